# SPDX-License-Identifier: Apache-2.0
"""Gradients of the segment reductions: those of the rows, from those of the segments.

Follows segment_reduction_op.h and reducer_functors.h in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import along_rows, segment_ids, select_rows
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT32, INTS, TorchOperator, enforce
from bridge.caffe2.operators.base.variants import register_variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__: list[str] = []


def _counts(ids: torch.Tensor, n: int) -> torch.Tensor:
    return torch.bincount(ids, minlength=n).clamp(min=1)[ids]


class _SegmentGradient(TorchOperator):
    """The base class of these operators."""

    by_lengths = False

    def spread(self, gradient: int, by: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradient of its segment for each row, and the segment ids.

        Input `gradient` has the gradients; input `by` the lengths of the segments, or the segment
        ids.
        """
        gradients, segments = self.x(gradient, FLOAT), self.x(by, INT32)
        enforce(
            gradients.dim() > 0 and segments.dim() == 1,
            "Gradients must have at least one dimension, segments one.",
        )
        ids = segment_ids(segments) if self.by_lengths else segments.long()
        n = gradients.size(0)
        if self.by_lengths:
            enforce(len(segments) == n, f"There are {len(segments)} lengths, but {n} gradients.")
        enforce(bool(((ids >= 0) & (ids < n)).all()), "A segment id is out of range.")
        return gradients.index_select(0, ids), ids

    def data(self, i: int, rows: torch.Tensor, indices: torch.Tensor | None = None) -> torch.Tensor:
        """Return the rows that were reduced: input `i`, or its rows at `indices`.

        Raises EnforceNotMet: their sizes are not those of `rows`.
        """
        data = self.x(i, FLOAT)
        if indices is not None:
            data = select_rows(data, indices)
        enforce(
            data.shape == rows.shape,
            f"The data have sizes {list(data.shape)}, not {list(rows.shape)}.",
        )
        return data


class _Summed(_SegmentGradient):
    """The gradient of each row: that of its segment, over its length for a mean, times its weight.

    Inputs: weights, if `weighted`; the gradients of segments; segment ids or lengths, int32.
    """

    mean = False
    weighted = False

    def RunOnDevice(self) -> None:
        rows, ids = self.spread(self.weighted, 1 + self.weighted)
        if self.mean:
            rows = rows / along_rows(_counts(ids, self.x(0, FLOAT).size(0)), rows)
        if self.weighted:
            weights = self.x(0, FLOAT)
            enforce(weights.numel() == len(rows), "There must be one weight per row.")
            rows = rows * along_rows(weights, rows)
        self.put(0, rows)


class _SummedWithWeights(_SegmentGradient):
    """The gradients of rows and of their weights.

    Inputs: weights, gradients of segments, lengths, the data; if `sparse`, indices of their rows.
    """

    by_lengths = True
    sparse = False

    def RunOnDevice(self) -> None:
        rows, _ = self.spread(1, 2)
        weights = self.x(0, FLOAT)
        enforce(weights.numel() == len(rows), "There must be one weight per row.")
        data = self.data(3, rows, self.x(4, INTS) if self.sparse else None)
        of_weights = (rows * data).flatten(1).sum(1) if len(rows) else rows.new_zeros(0)
        self.put(0, rows * along_rows(weights, rows))
        if self.OutputSize() > 1:
            self.put(1, of_weights)


@register_operator("LengthsMaxWithMainInputAndForwardOutputGradient")
class LengthsMaxGradient(_SegmentGradient):
    """(Y, dY, lengths, X) -> dX: dY where an element is the maximum of its segment, else 0."""

    by_lengths = True

    def RunOnDevice(self) -> None:
        rows, ids = self.spread(1, 2)
        greatest = self.x(0, FLOAT)
        enforce(greatest.shape == self.x(1, FLOAT).shape, "Y and dY must have the same shape.")
        self.put(0, torch.where(self.data(3, rows) == greatest[ids], rows, 0.0))


def _to_sum(rows: torch.Tensor, x: torch.Tensor, y: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return rows


def _to_mean(rows: torch.Tensor, x: torch.Tensor, y: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return rows / n


def _to_max(rows: torch.Tensor, x: torch.Tensor, y: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return torch.where(x == y, rows, 0.0)


def _to_log_sum_exp(
    rows: torch.Tensor, x: torch.Tensor, y: torch.Tensor, n: torch.Tensor
) -> torch.Tensor:
    return rows * torch.exp(x - y)


def _to_log_mean_exp(
    rows: torch.Tensor, x: torch.Tensor, y: torch.Tensor, n: torch.Tensor
) -> torch.Tensor:
    return rows * torch.exp(x - y) / n


class _OfRange(_SegmentGradient):
    """(X, Y, dY, segment ids) -> dX."""

    function: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]

    def RunOnDevice(self) -> None:
        rows, ids = self.spread(2, 3)
        x, y = self.data(0, rows), self.x(1, FLOAT)
        enforce(y.shape == self.x(2, FLOAT).shape, "Y and dY must have the same shape.")
        counts = along_rows(_counts(ids, len(y)), rows)
        self.put(0, type(self).function(rows, x, y[ids], counts))


@register_operator("ReduceFrontWeightedSumGradient")
class ReduceFrontWeightedSumGradient(TorchOperator):
    """(weights, dY, sizes of X) -> dX: dY times the weight of each row."""

    def RunOnDevice(self) -> None:
        weights, gradient = self.x(0, FLOAT), self.x(1, FLOAT)
        sizes = self.x(2, (c10.int64,)).tolist()
        enforce(
            sizes[:1] == [weights.numel()] and sizes[1:] == list(gradient.shape),
            f"{weights.numel()} weights and gradients {list(gradient.shape)} do not match {sizes}.",
        )
        self.put(0, gradient.unsqueeze(0) * along_rows(weights, gradient.unsqueeze(0)))


for _prefix in ("SortedSegment", "UnsortedSegment", "Lengths"):
    for _name in ("Sum", "Mean", "WeightedSum"):
        for _sparse in ("", "Sparse"):
            register_variant(
                f"{_sparse}{_prefix}{_name}Gradient",
                _Summed,
                by_lengths=_prefix == "Lengths",
                mean=_name == "Mean",
                weighted=_name == "WeightedSum",
            )
# These have indices as a further input, which is not used.
for _name, _mean, _weighted in (
    ("LengthsIndicesInGradientSum", False, False),
    ("LengthsIndicesInGradientMean", True, False),
    ("SparseLengthsIndicesInGradientSum", False, False),
    ("SparseLengthsIndicesInGradientMean", True, False),
    ("SparseLengthsIndicesInGradientWeightedSum", False, True),
):
    register_variant(f"{_name}Gradient", _Summed, by_lengths=True, mean=_mean, weighted=_weighted)
for _name, _of_rows in (
    ("LengthsWeightedSumWithMainInputGradient", False),
    ("SparseLengthsWeightedSumWithMainInputGradient", True),
    ("SparseLengthsIndicesInGradientWeightedSumWithMainInputGradient", True),
):
    register_variant(_name, _SummedWithWeights, sparse=_of_rows)
for _name, _function in {
    "Sum": _to_sum,
    "Mean": _to_mean,
    "Max": _to_max,
    "LogSumExp": _to_log_sum_exp,
    "LogMeanExp": _to_log_mean_exp,
}.items():
    register_variant(
        f"SortedSegmentRange{_name}Gradient", _OfRange, function=staticmethod(_function)
    )
