# SPDX-License-Identifier: Apache-2.0
"""Gradients of the segment reductions: those of the rows, from those of the segments.

Segments are given by ids or lengths, int32. Follows segment_reduction_op.h and
reducer_functors.h in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.operators.base import length_kernels
from bridge.caffe2.operators.base.checks import INT32, INT64, INTS, has_values, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import (
    along_rows,
    check_rows,
    counts_of,
    rows_at,
    segment_ids,
    select_rows,
    weighted,
)

BY_IDS = {"ids": INT32}
BY_LENGTHS = {"lengths": INT32}
# The forward operator's indices, or data: only their number matters.
BY_ROWS = {"lengths": INT32, "rows": None}


def _check(dy: Tensor, segments: Tensor) -> None:
    fits = dy.dim() > 0 and segments.dim() == 1
    require(fits, "gradients have at least one dimension, and segments one", dy, segments)


def _ids_of(dy: Tensor, lengths: Tensor, n: int | None = None) -> Tensor:
    """Return the segment of each row. `n` rows, if given, are used where lengths are unknown."""
    _check_lengths(dy, lengths)
    return segment_ids(lengths, n)


def _check_lengths(dy: Tensor, lengths: Tensor) -> None:
    _check(dy, lengths)
    require(lengths.shape[0] == dy.shape[0], "there is one length per gradient", lengths, dy)


def _counts(dy: Tensor, ids: Tensor) -> Tensor:
    """Return how many rows each segment has, at least 1, in a shape that broadcasts with dY."""
    return along_rows(counts_of(ids, dy.shape[0]).clamp(min=1), dy)


def _as_gradient(data: Tensor, rows: Tensor) -> Tensor:
    """Return the data in the sizes of their gradient, which may differ by dimensions of 1."""
    fits = data.shape[:1] == rows.shape[:1] and data.numel() == rows.numel()
    require(fits, "the data have the sizes of their gradient", data, rows)
    return data.reshape(rows.shape)


def _spread(dy: Tensor, ids: Tensor) -> Tensor:
    """Return for each row the gradient of its segment."""
    _check(dy, ids)
    return select_rows(dy, ids)


def _require_sorted(dy: Tensor, ids: Tensor) -> None:
    """Raise EnforceNotMet unless the ids are 0, 1, ... in order, as many as gradients."""
    _check(dy, ids)
    if takes_kernels(ids, dtype=torch.int32):
        run_kernel(length_kernels.sorted_to, ids, ids.numel(), dy.shape[0])
        return
    if not ids.shape[0] or not has_values(ids):
        return
    steps = ids.diff()
    require(
        int(ids[0]) == 0
        and int(ids[-1]) == dy.shape[0] - 1
        and not bool(((steps != 0) & (steps != 1)).any()),
        "the segment ids begin with 0, are sorted and have no gaps",
        ids.tolist(),
    )


def _segments(kind: str, dy: Tensor, ids: Tensor) -> Tensor:
    """Return the gradient of each row: its segment's, for a mean over the number of its rows."""
    _check(dy, ids)
    check_rows(ids, dy.shape[0])
    return rows_at(dy / _counts(dy, ids) if "Mean" in kind else dy, ids)


@operator("UnsortedSegmentSumGradient", types=BY_IDS)
@operator("UnsortedSegmentMeanGradient", types=BY_IDS)
@operator("SparseUnsortedSegmentSumGradient", types=BY_IDS)
@operator("SparseUnsortedSegmentMeanGradient", types=BY_IDS)
@operator("SortedSegmentSumGradient", types=BY_IDS)
@operator("SortedSegmentMeanGradient", types=BY_IDS)
@operator("SparseSortedSegmentSumGradient", types=BY_IDS)
@operator("SparseSortedSegmentMeanGradient", types=BY_IDS)
def segments_gradient(dy: Tensor, ids: Tensor, *, kind: OperatorType) -> Tensor:
    """(dY, segment ids) -> the gradient of each row."""
    if "Unsorted" not in kind:
        _require_sorted(dy, ids)
    return _segments(kind, dy, ids)


@operator("UnsortedSegmentWeightedSumGradient", types=BY_IDS)
@operator("SparseUnsortedSegmentWeightedSumGradient", types=BY_IDS)
@operator("SortedSegmentWeightedSumGradient", types=BY_IDS)
@operator("SparseSortedSegmentWeightedSumGradient", types=BY_IDS)
def segment_weighted_sum_gradient(
    weights: Tensor, dy: Tensor, ids: Tensor, *, kind: OperatorType
) -> Tensor:
    """The gradient of each row: its segment's times its weight."""
    if "Unsorted" not in kind:
        _require_sorted(dy, ids)
    return weighted(_spread(dy, ids), weights)


def _of_lengths(kind: str, dy: Tensor, lengths: Tensor, n: int | None, out: Out) -> Tensor:
    """Return the gradient of each of `n` rows, by default the sum of the lengths."""
    if not (takes_kernels(dy) and takes_kernels(lengths, dtype=torch.int32)):
        return _segments(kind, dy, _ids_of(dy, lengths, n))
    _check_lengths(dy, lengths)
    segments = lengths.numel()
    if n is None:
        n = run_kernel(length_kernels.sum_of_lengths, lengths, segments)
    sizes = (n, *dy.shape[1:])
    made = dy.new_empty(sizes) if out is None or out.shape != sizes else out
    given = dy, lengths, segments, n, math.prod(dy.shape[1:]), "Mean" in kind
    return run_kernel(length_kernels.rows_of_segments, made, *given)


@operator("LengthsSumGradient", types=BY_LENGTHS, effects=("values",))
@operator("LengthsMeanGradient", types=BY_LENGTHS, effects=("values",))
@operator("SparseLengthsSumGradient", types=BY_LENGTHS, effects=("values",))
@operator("SparseLengthsMeanGradient", types=BY_LENGTHS, effects=("values",))
def lengths_gradient(dy: Tensor, lengths: Tensor, *, kind: OperatorType, out: Out = None) -> Tensor:
    """(dY, lengths) -> the gradient of each row."""
    return _of_lengths(kind, dy, lengths, None, out)


@operator("LengthsIndicesInGradientSumGradient", types=BY_ROWS, rearranges=())
@operator("LengthsIndicesInGradientMeanGradient", types=BY_ROWS, rearranges=())
@operator("SparseLengthsIndicesInGradientSumGradient", types=BY_ROWS, rearranges=())
@operator("SparseLengthsIndicesInGradientMeanGradient", types=BY_ROWS, rearranges=())
def lengths_indices_in_gradient_gradient(
    dy: Tensor, lengths: Tensor, rows: Tensor, *, kind: OperatorType, out: Out = None
) -> Tensor:
    """(dY, lengths, indices or data) -> the gradient of each row."""
    return _of_lengths(kind, dy, lengths, rows.shape[0], out)


@operator("LengthsWeightedSumGradient", types=BY_LENGTHS)
@operator("SparseLengthsWeightedSumGradient", types=BY_LENGTHS)
def lengths_weighted_sum_gradient(weights: Tensor, dy: Tensor, lengths: Tensor) -> Tensor:
    """The gradient of each row: its segment's times its weight."""
    return weighted(_spread(dy, _ids_of(dy, lengths, weights.numel())), weights)


@operator("SparseLengthsIndicesInGradientWeightedSumGradient", types=BY_ROWS, rearranges=())
def sparse_lengths_indices_in_gradient_weighted_sum_gradient(
    weights: Tensor, dy: Tensor, lengths: Tensor, rows: Tensor
) -> Tensor:
    """The gradient of each row: its segment's times its weight."""
    return lengths_weighted_sum_gradient(weights, dy, lengths)


@operator("LengthsWeightedSumWithMainInputGradient", types=BY_LENGTHS, outputs="1-*")
def lengths_weighted_sum_with_main_input_gradient(
    weights: Tensor, dy: Tensor, lengths: Tensor, data: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the rows and of their weights."""
    rows = _spread(dy, _ids_of(dy, lengths, weights.numel()))
    dx = weighted(rows, weights)
    data = _as_gradient(data, rows)
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
    ids = _ids_of(dy, lengths, x.shape[0] if x.dim() else 0)
    rows = _spread(dy, ids)
    return torch.where(_as_gradient(x, rows) == _as_gradient(y, dy)[ids], rows, 0.0)


def _require_sizes(x: Tensor, y: Tensor, dy: Tensor, rows: Tensor) -> None:
    require(x.numel() == rows.numel(), "the data have the size of their gradient", x, rows)
    require(y.numel() == dy.numel(), "Y and dY have the same size", y, dy)


def _of_range(x: Tensor, y: Tensor, dy: Tensor, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return for each row of X the row, the gradient of its segment, and the segment's result.

    All have the sizes of a row of dY; those of X and Y only need as many elements.
    """
    _require_sorted(dy, ids)
    rows = _spread(dy, ids)
    _require_sizes(x, y, dy, rows)
    return x.view(rows.shape), rows, y.view(dy.shape).index_select(0, ids)


@operator("SortedSegmentRangeSumGradient", types=BY_IDS)
@operator("SortedSegmentRangeMeanGradient", types=BY_IDS)
def sorted_segment_range_gradient(
    x: Tensor, y: Tensor, dy: Tensor, ids: Tensor, *, kind: OperatorType
) -> Tensor:
    """(X, Y, dY, ids) -> the gradient of each row: its segment's, over its rows for a mean."""
    rows = segments_gradient(dy, ids, kind=kind)
    _require_sizes(x, y, dy, rows)
    return rows


@operator("SortedSegmentRangeMaxGradient", types=BY_IDS)
def sorted_segment_range_max_gradient(x: Tensor, y: Tensor, dy: Tensor, ids: Tensor) -> Tensor:
    """dX: dY where an element is the maximum of its segment, else 0."""
    x, rows, results = _of_range(x, y, dy, ids)
    return torch.where(x == results, rows, 0.0)


@operator("SortedSegmentRangeLogSumExpGradient", types=BY_IDS)
@operator("SortedSegmentRangeLogMeanExpGradient", types=BY_IDS)
def sorted_segment_range_log_exp_gradient(
    x: Tensor, y: Tensor, dy: Tensor, ids: Tensor, *, kind: OperatorType
) -> Tensor:
    """dX = dY exp(X - Y), for the mean over the number of rows of the segment."""
    x, rows, results = _of_range(x, y, dy, ids)
    slopes = rows * torch.exp(x - results)
    return slopes / _counts(dy, ids).index_select(0, ids) if "Mean" in kind else slopes


@operator("ReduceFrontWeightedSumGradient", types={"sizes": INT64})
def reduce_front_weighted_sum_gradient(weights: Tensor, dy: Tensor, sizes: Tensor) -> Tensor:
    """dX: dY times the weight of each row. `sizes` are those of X."""
    if has_values(sizes):
        fits = sizes.tolist() == [weights.numel(), *dy.shape]
        require(
            fits, f"X of sizes {sizes.tolist()} has a row of dY's sizes per weight", weights, dy
        )
    rows = dy.unsqueeze(0)
    return rows * along_rows(weights, rows)
