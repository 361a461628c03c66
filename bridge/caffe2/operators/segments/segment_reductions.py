# SPDX-License-Identifier: Apache-2.0
"""Sums, means and extremes of the rows of segments.

A segment is a run of rows, given by lengths, or the rows with one segment id. Operators with
`Sparse` in their names reduce the rows selected by indices. Follows segment_reduction_op.h,
reducer_functors.h and lengths_reducer_ops.h in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceIndexError, EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import (
    along_rows,
    positions_in_segments,
    segment_ids,
    select_rows,
)
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT32, INTS, TorchOperator, enforce
from bridge.caffe2.operators.base.variants import register_variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__: list[str] = []


def _sum(rows: torch.Tensor, ids: torch.Tensor, n: int) -> torch.Tensor:
    return rows.new_zeros((n, *rows.shape[1:])).index_add_(0, ids, rows)


def _mean(rows: torch.Tensor, ids: torch.Tensor, n: int) -> torch.Tensor:
    counts = torch.bincount(ids, minlength=n).clamp_(min=1)
    return _sum(rows, ids, n) / along_rows(counts, rows)


def _max(rows: torch.Tensor, ids: torch.Tensor, n: int) -> torch.Tensor:
    result = rows.new_zeros((n, *rows.shape[1:]))  # the maximum of no rows is 0
    places = along_rows(ids, rows).expand_as(rows)
    return result.scatter_reduce_(0, places, rows, "amax", include_self=False)


def _log_sum_exp(rows: torch.Tensor, ids: torch.Tensor, n: int) -> torch.Tensor:
    greatest = _max(rows, ids, n)
    return torch.log(_sum(torch.exp(rows - greatest[ids]), ids, n)) + greatest


def _log_mean_exp(rows: torch.Tensor, ids: torch.Tensor, n: int) -> torch.Tensor:
    greatest = _max(rows, ids, n)
    return torch.log(_mean(torch.exp(rows - greatest[ids]), ids, n)) + greatest


class _Segments(TorchOperator):
    """A reduction by segments of the rows of input 0, selected by indices and times weights.

    Inputs: data, weights if `weighted`, indices if `sparse`, then segment ids or lengths.
    """

    function: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]
    weighted = False
    sparse = False

    def RunOnDevice(self) -> None:
        data = self.x(0, FLOAT)
        enforce(data.dim() > 0, "The data must have at least one dimension.")
        last = self.InputSize() - 1
        by = self.x(last, INT32)
        enforce(by.dim() == 1, f"Input {last} must have one dimension.")
        rows = self.rows(data)
        if self.weighted:
            rows = self.times_weights(rows)
        ids, n = self.segments(by, len(rows))
        self.put(0, type(self).function(rows, ids, n))

    def rows(self, data: torch.Tensor) -> torch.Tensor:
        """Return the rows to reduce."""
        if not self.sparse:
            return data
        place = self.InputSize() - 2
        indices = self.x(place, INTS)
        enforce(indices.dim() == 1, f"Input {place}, the indices, must have one dimension.")
        return select_rows(data, indices)

    def times_weights(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the rows times their weights, one per row."""
        weights = self.x(1, FLOAT)
        enforce(
            weights.dim() > 0 and weights.size(0) == len(rows),
            f"There are {len(rows)} rows, but weights of sizes {list(weights.shape)}.",
        )
        enforce(weights.numel() == len(rows), "There must be one weight per row.")
        return rows * along_rows(weights, rows)

    def segments(self, by: torch.Tensor, n_rows: int) -> tuple[torch.Tensor, int]:
        """Return the segment of each row, and the number of segments."""
        raise NotImplementedError


class _Sorted(_Segments):
    """Segment ids are 0, 1, 2, ... in order, each at least once."""

    def segments(self, by: torch.Tensor, n_rows: int) -> tuple[torch.Tensor, int]:
        check_number(by, n_rows)
        if not n_rows:
            return by.long(), 0
        steps = by.diff()
        if int(by[0]) != 0 or bool(((steps != 0) & (steps != 1)).any()):
            raise EnforceNotMet(
                "Segment ids must begin with 0, be sorted and have no gaps.",
                condition="s_ids[start] + 1 == s_ids[i]",
            )
        return by.long(), int(by[-1]) + 1


class _Unsorted(_Segments):
    """Segment ids have any order; there are `num_segments`, by default the greatest id + 1."""

    def segments(self, by: torch.Tensor, n_rows: int) -> tuple[torch.Tensor, int]:
        check_number(by, n_rows)
        n = self.GetSingleArgument("num_segments", -1)
        if n == -1:
            n = max(int(by.max()) + 1, 0) if n_rows else 0
        enforce(n >= 0, f"The number of segments must not be negative: {n}.")
        if bool(((by < 0) | (by >= n)).any()):
            raise EnforceIndexError(f"A segment id is out of range for {n} segments.")
        return by.long(), n


class _Lengths(_Segments):
    """Lengths are the number of rows of each segment."""

    def segments(self, by: torch.Tensor, n_rows: int) -> tuple[torch.Tensor, int]:
        return segment_ids(by, n_rows), len(by)


def check_number(ids: torch.Tensor, n_rows: int) -> None:
    """Raise EnforceNotMet unless there is one segment id per row."""
    enforce(len(ids) == n_rows, f"There are {len(ids)} segment ids, but {n_rows} rows.")


class _LookUp(_Lengths):
    """Rows of float32 or float16 at indices; without indices the result is 0."""

    sparse = True
    positional = False

    def RunOnDevice(self) -> None:
        data = self.x(0, (c10.float32, c10.float16))
        indices, lengths = self.x(1 + self.weighted, INTS), self.x(2 + self.weighted, INT32)
        enforce(
            data.dim() > 0 and lengths.dim() > 0,
            "Data and lengths must have at least one dimension.",
        )
        sizes = [lengths.size(0), *data.shape[1:]]
        if not indices.numel():
            self.out(0, sizes, c10.float32).zero_()
            return
        enforce(
            indices.dim() == 1 and lengths.dim() == 1,
            "Indices and lengths must have one dimension.",
        )
        ids = segment_ids(lengths, indices.numel())
        rows = select_rows(data, indices).float()
        if self.positional:
            rows = self.times_positions(rows, lengths, ids)
        elif self.weighted:
            rows = self.times_weights(rows)
        self.put(0, type(self).function(rows, ids, len(lengths)))

    def times_positions(
        self, rows: torch.Tensor, lengths: torch.Tensor, ids: torch.Tensor
    ) -> torch.Tensor:
        """Return the rows times the weight of their position in the segment."""
        weights = self.x(1, FLOAT)
        places = positions_in_segments(lengths, ids)
        enforce(
            weights.dim() == 1 and int(places.max()) < weights.numel(),
            f"{weights.numel()} weights are too few for a length of {int(places.max()) + 1}.",
        )
        return rows * along_rows(weights[places], rows)


# By prefix and suffix of Caffe2's operators: how segments are given, the function.
_BASES: dict[str, type[_Segments]] = {
    "SortedSegment": _Sorted,
    "UnsortedSegment": _Unsorted,
    "SparseSortedSegment": _Sorted,
    "SparseUnsortedSegment": _Unsorted,
    "SortedSegmentRange": _Sorted,
    "Lengths": _Lengths,
    "SparseLengths": _LookUp,
}
_FUNCTIONS = {
    "Sum": _sum,
    "Mean": _mean,
    "Max": _max,
    "WeightedSum": _sum,
    "PositionalWeightedSum": _sum,
    "LogSumExp": _log_sum_exp,
    "LogMeanExp": _log_mean_exp,
}
_PLAIN = ("Sum", "Mean", "WeightedSum")
_REDUCTIONS = {
    "SortedSegment": _PLAIN,
    "UnsortedSegment": _PLAIN,
    "SparseSortedSegment": _PLAIN,
    "SparseUnsortedSegment": _PLAIN,
    "SortedSegmentRange": ("Sum", "Mean", "Max", "LogSumExp", "LogMeanExp"),
    "Lengths": (*_PLAIN, "Max"),
    "SparseLengths": (*_PLAIN, "PositionalWeightedSum"),
}

for _prefix, _names in _REDUCTIONS.items():
    for _name in _names:
        register_variant(
            _prefix + _name,
            _BASES[_prefix],
            f"{_name} of the rows of each segment.",
            function=staticmethod(_FUNCTIONS[_name]),
            weighted="Weighted" in _name,
            sparse=_prefix.startswith("Sparse"),
            positional=_name.startswith("Positional"),
        )


@register_operator("SparseLengthsMax")
class SparseLengthsMax(_Lengths):
    """The maxima of the rows of each segment, selected by indices."""

    function = staticmethod(_max)
    sparse = True
