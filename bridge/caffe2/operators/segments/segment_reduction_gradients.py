# SPDX-License-Identifier: Apache-2.0
"""Gradients of the segment reductions: those of the rows, from those of the segments.

Segments are given by ids or lengths, int32. Follows segment_reduction_op.h and
reducer_functors.h in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, INT64, INTS, has_values, require
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import (
    along_rows,
    counts_of,
    segment_ids,
    select_rows,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__: list[str] = []

BY_IDS = {"ids": INT32}
BY_LENGTHS = {"lengths": INT32}
# The forward operator's indices, or data: only their number matters.
BY_ROWS = {"lengths": INT32, "rows": None}


def _check(dy: Tensor, segments: Tensor) -> None:
    require(
        dy.dim() > 0 and segments.dim() == 1,
        "gradients have at least one dimension, and segments one",
        dy,
        segments,
    )


def _ids_of(dy: Tensor, lengths: Tensor, n_rows: int | None = None) -> Tensor:
    """Return the segment of each row. `n_rows`, if given, is used where lengths are not known."""
    _check(dy, lengths)
    n = dy.shape[0]
    require(lengths.shape[0] == n, "there is one length per gradient", lengths, dy)
    return segment_ids(lengths, None if has_values(lengths) else n_rows)


def _over_counts(rows: Tensor, ids: Tensor, n: int) -> Tensor:
    return rows / along_rows(counts_of(ids, n).clamp(min=1)[ids], rows)


def _weighted(rows: Tensor, weights: Tensor) -> Tensor:
    require(weights.numel() == rows.shape[0], "there is one weight per row", weights, rows)
    return rows * along_rows(weights, rows)


def _check_data(data: Tensor, rows: Tensor) -> None:
    require(data.shape == rows.shape, "the data have the sizes of their gradient", data, rows)


def _spread(dy: Tensor, ids: Tensor) -> Tensor:
    """Return for each row the gradient of its segment."""
    _check(dy, ids)
    return select_rows(dy, ids)


@operator("SortedSegmentSumGradient", types=BY_IDS)
@operator("UnsortedSegmentSumGradient", types=BY_IDS)
@operator("SparseSortedSegmentSumGradient", types=BY_IDS)
@operator("SparseUnsortedSegmentSumGradient", types=BY_IDS)
def segment_sum_gradient(dy: Tensor, ids: Tensor) -> Tensor:
    """The gradient of each row: that of its segment."""
    return _spread(dy, ids)


@operator("SortedSegmentMeanGradient", types=BY_IDS)
@operator("UnsortedSegmentMeanGradient", types=BY_IDS)
@operator("SparseSortedSegmentMeanGradient", types=BY_IDS)
@operator("SparseUnsortedSegmentMeanGradient", types=BY_IDS)
def segment_mean_gradient(dy: Tensor, ids: Tensor) -> Tensor:
    """The gradient of each row: that of its segment over the number of its rows."""
    return _over_counts(_spread(dy, ids), ids, dy.shape[0])


@operator("SortedSegmentWeightedSumGradient", types=BY_IDS)
@operator("UnsortedSegmentWeightedSumGradient", types=BY_IDS)
@operator("SparseSortedSegmentWeightedSumGradient", types=BY_IDS)
@operator("SparseUnsortedSegmentWeightedSumGradient", types=BY_IDS)
def segment_weighted_sum_gradient(weights: Tensor, dy: Tensor, ids: Tensor) -> Tensor:
    """The gradient of each row: that of its segment times its weight."""
    return _weighted(_spread(dy, ids), weights)


@operator("LengthsSumGradient", types=BY_LENGTHS, effects=("values",))
@operator("SparseLengthsSumGradient", types=BY_LENGTHS, effects=("values",))
def lengths_sum_gradient(dy: Tensor, lengths: Tensor) -> Tensor:
    """The gradient of each row: that of its segment."""
    return _spread(dy, _ids_of(dy, lengths))


@operator("LengthsMeanGradient", types=BY_LENGTHS, effects=("values",))
@operator("SparseLengthsMeanGradient", types=BY_LENGTHS, effects=("values",))
def lengths_mean_gradient(dy: Tensor, lengths: Tensor) -> Tensor:
    """The gradient of each row: that of its segment over the number of its rows."""
    ids = _ids_of(dy, lengths)
    return _over_counts(_spread(dy, ids), ids, dy.shape[0])


@operator("LengthsIndicesInGradientSumGradient", types=BY_ROWS)
@operator("SparseLengthsIndicesInGradientSumGradient", types=BY_ROWS)
def lengths_indices_in_gradient_sum_gradient(dy: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
    """The gradient of each row: that of its segment."""
    return _spread(dy, _ids_of(dy, lengths, rows.shape[0]))


@operator("LengthsIndicesInGradientMeanGradient", types=BY_ROWS)
@operator("SparseLengthsIndicesInGradientMeanGradient", types=BY_ROWS)
def lengths_indices_in_gradient_mean_gradient(dy: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
    """The gradient of each row: that of its segment over the number of its rows."""
    ids = _ids_of(dy, lengths, rows.shape[0])
    return _over_counts(_spread(dy, ids), ids, dy.shape[0])


@operator("LengthsWeightedSumGradient", types=BY_LENGTHS)
@operator("SparseLengthsWeightedSumGradient", types=BY_LENGTHS)
def lengths_weighted_sum_gradient(weights: Tensor, dy: Tensor, lengths: Tensor) -> Tensor:
    """The gradient of each row: that of its segment times its weight."""
    return _weighted(_spread(dy, _ids_of(dy, lengths, weights.numel())), weights)


@operator("SparseLengthsIndicesInGradientWeightedSumGradient", types=BY_ROWS)
def sparse_lengths_indices_in_gradient_weighted_sum_gradient(
    weights: Tensor, dy: Tensor, lengths: Tensor, rows: Tensor
) -> Tensor:
    """The gradient of each row: that of its segment times its weight."""
    return lengths_weighted_sum_gradient(weights, dy, lengths)


@operator("LengthsWeightedSumWithMainInputGradient", types=BY_LENGTHS, outputs="1-*")
def lengths_weighted_sum_with_main_input_gradient(
    weights: Tensor, dy: Tensor, lengths: Tensor, data: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the rows and of their weights."""
    rows = _spread(dy, _ids_of(dy, lengths, weights.numel()))
    dx = _weighted(rows, weights)
    _check_data(data, rows)
    return dx, (rows * data).flatten(1).sum(1) if rows.dim() > 1 else rows * data


@operator(
    "SparseLengthsWeightedSumWithMainInputGradient",
    types={"lengths": INT32, "indices": INTS},
    outputs="1-*",
)
@operator(
    "SparseLengthsIndicesInGradientWeightedSumWithMainInputGradient",
    types={"lengths": INT32, "indices": INTS},
)
def sparse_lengths_weighted_sum_with_main_input_gradient(
    weights: Tensor, dy: Tensor, lengths: Tensor, data: Tensor, indices: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the rows at the indices, and of the weights."""
    chosen = select_rows(data, indices)
    return lengths_weighted_sum_with_main_input_gradient(weights, dy, lengths, chosen)


@operator("LengthsMaxWithMainInputAndForwardOutputGradient", types=BY_LENGTHS, outputs="1-*")
def lengths_max_gradient(y: Tensor, dy: Tensor, lengths: Tensor, x: Tensor) -> Tensor:
    """dX: dY where an element is the maximum of its segment, else 0."""
    require(y.shape == dy.shape, "Y and dY have the same sizes", y, dy)
    ids = _ids_of(dy, lengths, x.shape[0] if x.dim() else 0)
    rows = _spread(dy, ids)
    _check_data(x, rows)
    return torch.where(x == y[ids], rows, 0.0)


def _of_range(x: Tensor, y: Tensor, dy: Tensor, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return for each row of X the row, the gradient of its segment, and the segment's result.

    All have the sizes of a row of dY; those of X and Y only need as many elements.
    """
    rows = _spread(dy, ids)
    require(x.numel() == rows.numel(), "the data have the size of their gradient", x, rows)
    require(y.numel() == dy.numel(), "Y and dY have the same size", y, dy)
    return x.view(rows.shape), rows, y.view(dy.shape).index_select(0, ids)


@operator("SortedSegmentRangeSumGradient", types=BY_IDS)
def sorted_segment_range_sum_gradient(x: Tensor, y: Tensor, dy: Tensor, ids: Tensor) -> Tensor:
    """The gradient of each row: that of its segment."""
    return _of_range(x, y, dy, ids)[1]


@operator("SortedSegmentRangeMeanGradient", types=BY_IDS)
def sorted_segment_range_mean_gradient(x: Tensor, y: Tensor, dy: Tensor, ids: Tensor) -> Tensor:
    """The gradient of each row: that of its segment over the number of its rows."""
    return _over_counts(_of_range(x, y, dy, ids)[1], ids, dy.shape[0])


@operator("SortedSegmentRangeMaxGradient", types=BY_IDS)
def sorted_segment_range_max_gradient(x: Tensor, y: Tensor, dy: Tensor, ids: Tensor) -> Tensor:
    """dX: dY where an element is the maximum of its segment, else 0."""
    x, rows, results = _of_range(x, y, dy, ids)
    return torch.where(x == results, rows, 0.0)


@operator("SortedSegmentRangeLogSumExpGradient", types=BY_IDS)
def sorted_segment_range_log_sum_exp_gradient(
    x: Tensor, y: Tensor, dy: Tensor, ids: Tensor
) -> Tensor:
    """dX = dY exp(X - Y)."""
    x, rows, results = _of_range(x, y, dy, ids)
    return rows * torch.exp(x - results)


@operator("SortedSegmentRangeLogMeanExpGradient", types=BY_IDS)
def sorted_segment_range_log_mean_exp_gradient(
    x: Tensor, y: Tensor, dy: Tensor, ids: Tensor
) -> Tensor:
    """dX = dY exp(X - Y) over the number of rows of the segment."""
    x, rows, results = _of_range(x, y, dy, ids)
    return _over_counts(rows * torch.exp(x - results), ids, dy.shape[0])


@operator("ReduceFrontWeightedSumGradient", types={"sizes": INT64})
def reduce_front_weighted_sum_gradient(weights: Tensor, dy: Tensor, sizes: Tensor) -> Tensor:
    """dX: dY times the weight of each row. `sizes` are those of X."""
    if has_values(sizes):
        require(
            sizes.tolist() == [weights.numel(), *dy.shape],
            f"X of sizes {sizes.tolist()} has a row of dY's sizes per weight",
            weights,
            dy,
        )
    rows = dy.unsqueeze(0)
    return rows * along_rows(weights, rows)
