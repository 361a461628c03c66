# SPDX-License-Identifier: Apache-2.0
"""Sums, means and extremes of the rows with the same segment id.

Sorted ids are 0, 1, 2, ... in order, each at least once; unsorted ones have any order. Operators
with `Sparse` in their names reduce the rows of the data at indices. Follows
segment_reduction_op.h and reducer_functors.h in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bridge.c10.errors import EnforceIndexError
from bridge.caffe2.execution.function_operator import Function, OperatorType, Out, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import add_pattern
from bridge.caffe2.operators.base import length_kernels
from bridge.caffe2.operators.base.checks import INT32, INTS, assert_traced, has_values, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.gradients import gradient_alone
from bridge.caffe2.operators.base.rows_and_segments import (
    along_rows,
    counts_of,
    select_rows,
    weighted,
)

BY_IDS = {"segment_ids": INT32}
BY_INDICES = {"indices": INTS, "segment_ids": INT32}


def _sum(rows: Tensor, ids: Tensor, n: int, out: Out = None) -> Tensor:
    sizes = (n, *rows.shape[1:])
    if takes_kernels(rows) and takes_kernels(ids, dtype=torch.int32):
        made = rows.new_empty(sizes) if out is None or out.shape != sizes else out
        given = (rows, ids, rows.shape[0], math.prod(sizes[1:]), n)
        return run_kernel(length_kernels.sums_by_ids, made, *given)
    return rows.new_zeros(sizes).index_add(0, ids, rows)


def _mean(rows: Tensor, ids: Tensor, n: int) -> Tensor:
    return _sum(rows, ids, n) / along_rows(counts_of(ids, n).clamp(min=1), rows)


def _max(rows: Tensor, ids: Tensor, n: int) -> Tensor:
    result = rows.new_zeros((n, *rows.shape[1:]))  # the maximum of no rows is 0
    places = along_rows(ids.long(), rows).expand_as(rows)
    return result.scatter_reduce(0, places, rows.detach(), "amax", include_self=False)


def _rows(data: Tensor, indices: Tensor) -> Tensor:
    """Return the rows of the data at indices."""
    require(data.dim() > 0, "the data have at least one dimension", data)
    require(indices.dim() == 1, "the indices have one dimension", indices)
    return select_rows(data, indices)


def _check_ids(rows: Tensor, ids: Tensor) -> None:
    require(rows.dim() > 0, "the data have at least one dimension", rows)
    require(ids.dim() == 1, "the segment ids have one dimension", ids)
    require(ids.shape[0] == rows.shape[0], "there is one segment id per row", ids, rows)


def _sorted(rows: Tensor, ids: Tensor) -> tuple[Tensor, Tensor, int]:
    """Return the rows, their segments and the number of segments.

    Raises EnforceNotMet: the ids do not begin with 0, are not sorted or have gaps.
    """
    _check_ids(rows, ids)
    if takes_kernels(ids, dtype=torch.int32):
        last = run_kernel(length_kernels.last_id, ids, ids.shape[0], False, True)
        return rows, ids, last + 1
    if not ids.shape[0]:
        return rows, ids, 0
    steps = ids.diff()
    fits = int(ids[0]) == 0 and not bool(((steps != 0) & (steps != 1)).any())
    require(fits, "the segment ids begin with 0, are sorted and have no gaps", ids.tolist())
    return rows, ids, int(ids[-1]) + 1


def _unsorted(rows: Tensor, ids: Tensor, n: int) -> tuple[Tensor, Tensor, int]:
    """Return the rows, their segments and the number of segments: `n`, or as the ids say if -1.

    Raises EnforceNotMet, also an IndexError: a segment id is out of range.
    """
    _check_ids(rows, ids)
    by_kernel, count = takes_kernels(ids, dtype=torch.int32), ids.shape[0]
    if n == -1:
        last = -1
        if count:
            last = run_kernel(length_kernels.longest, ids, count) if by_kernel else int(ids.max())
        n = max(last + 1, 0)
    require(n >= 0, "the number of segments is not negative", n)
    if by_kernel:
        run_kernel(length_kernels.in_range, ids, count, n, False)
    elif not has_values(ids):
        assert_traced(ids, "segment ids are in range", lambda x: (x >= 0) & (x < n))
    elif bool(((ids < 0) | (ids >= n)).any()):
        raise EnforceIndexError(f"A segment id is out of range for {n} segments: {ids.tolist()}.")
    return rows, ids, n


def _by_ids(name: str, gradient: Any) -> Callable[[Function], Function]:
    """Return `operator` for a reduction by ids, of the rows at indices if its name has Sparse."""
    types = BY_INDICES if name.startswith("Sparse") else BY_IDS
    # Sorted ids decide how many segments there are.
    effects = () if "Unsorted" in name else ("values",)
    return operator(name, types=types, effects=effects, gradient=gradient)


def _reduced(kind: str, rows: Tensor, ids: Tensor, n: int) -> Tensor:
    """Return the sums of segments, or their means for an operator whose type says so."""
    return (_mean if "Mean" in kind else _sum)(rows, ids, n)


@_by_ids("SortedSegmentSum", "$Gradient g0 i1 > 0")
@_by_ids("SortedSegmentMean", "$Gradient g0 i1 > 0")
@_by_ids("SortedSegmentRangeSum", "$Gradient i0 o0 g0 i1 > 0")
@_by_ids("SortedSegmentRangeMean", "$Gradient i0 o0 g0 i1 > 0")
def sorted_segments(data: Tensor, segment_ids: Tensor, *, kind: OperatorType) -> Tensor:
    """The sum or the mean of the rows of each segment."""
    return _reduced(kind, *_sorted(data, segment_ids))


def _segments_gradient(maker: GradientMaker) -> None:
    maker.enforce(
        not maker.argument("grad_on_weights", 0), "does not work with argument 'grad_on_weights'"
    )
    if maker.op.type.startswith("Sparse"):
        add_pattern(f"{maker.op.type.removeprefix('Sparse')}Gradient i1 g0 i3 > 0@2", maker)
    else:
        add_pattern("$Gradient i1 g0 i2 > 0", maker)


@_by_ids("SortedSegmentWeightedSum", _segments_gradient)
def sorted_segment_weighted_sum(data: Tensor, weights: Tensor, segment_ids: Tensor) -> Tensor:
    """The sum of the rows of each segment times their weights."""
    _check_ids(data, segment_ids)
    return _sum(*_sorted(weighted(data, weights), segment_ids))


@_by_ids("SparseSortedSegmentSum", "SortedSegmentSumGradient g0 i2 > 0@1")
@_by_ids("SparseSortedSegmentMean", "SortedSegmentMeanGradient g0 i2 > 0@1")
def sparse_sorted_segments(
    data: Tensor, indices: Tensor, segment_ids: Tensor, *, kind: OperatorType
) -> Tensor:
    """The sum or the mean of the rows at the indices of each segment."""
    return _reduced(kind, *_sorted(_rows(data, indices), segment_ids))


@_by_ids("SparseSortedSegmentWeightedSum", _segments_gradient)
def sparse_sorted_segment_weighted_sum(
    data: Tensor, weights: Tensor, indices: Tensor, segment_ids: Tensor
) -> Tensor:
    """The sum of the rows at the indices of each segment, times the weights of the indices."""
    return _sum(*_sorted(weighted(_rows(data, indices), weights), segment_ids))


@_by_ids("UnsortedSegmentSum", "$Gradient g0 i1 > 0")
def unsorted_segment_sum(
    data: Tensor, segment_ids: Tensor, *, num_segments: int = -1, out: Out = None
) -> Tensor:
    """The sum of the rows of each of `num_segments`, by default the greatest id + 1."""
    return _sum(*_unsorted(data, segment_ids, num_segments), out)


@_by_ids("UnsortedSegmentMean", "$Gradient g0 i1 > 0")
def unsorted_segment_mean(data: Tensor, segment_ids: Tensor, *, num_segments: int = -1) -> Tensor:
    """The mean of the rows of each of `num_segments`, by default the greatest id + 1."""
    return _mean(*_unsorted(data, segment_ids, num_segments))


@_by_ids("UnsortedSegmentWeightedSum", _segments_gradient)
def unsorted_segment_weighted_sum(
    data: Tensor, weights: Tensor, segment_ids: Tensor, *, num_segments: int = -1
) -> Tensor:
    """The sum of the rows of each of `num_segments` times their weights."""
    _check_ids(data, segment_ids)
    return _sum(*_unsorted(weighted(data, weights), segment_ids, num_segments))


@_by_ids("SparseUnsortedSegmentSum", "UnsortedSegmentSumGradient g0 i2 > 0@1")
@_by_ids("SparseUnsortedSegmentMean", "UnsortedSegmentMeanGradient g0 i2 > 0@1")
def sparse_unsorted_segments(
    data: Tensor,
    indices: Tensor,
    segment_ids: Tensor,
    *,
    num_segments: int = -1,
    kind: OperatorType,
) -> Tensor:
    """The sum or the mean of the rows at the indices of each of `num_segments`."""
    return _reduced(kind, *_unsorted(_rows(data, indices), segment_ids, num_segments))


@_by_ids("SparseUnsortedSegmentWeightedSum", _segments_gradient)
def sparse_unsorted_segment_weighted_sum(
    data: Tensor, weights: Tensor, indices: Tensor, segment_ids: Tensor, *, num_segments: int = -1
) -> Tensor:
    """The sum of the rows at the indices of each segment, times the weights of the indices."""
    return _sum(*_unsorted(weighted(_rows(data, indices), weights), segment_ids, num_segments))


@_by_ids("SortedSegmentRangeMax", "$Gradient i0 o0 g0 i1 > 0")
def sorted_segment_range_max(data: Tensor, segment_ids: Tensor) -> Tensor:
    """The maximum of the rows of each segment, elementwise."""
    rows, ids, n = _sorted(data, segment_ids)
    greatest = _max(rows, ids, n)
    if not rows.requires_grad:
        return greatest
    # All maxima of a segment get its gradient, as in Caffe2: their value is 0 here.
    at_maximum = torch.where(rows == greatest.index_select(0, ids), gradient_alone(rows), 0.0)
    return greatest + _sum(at_maximum, ids, n)


@_by_ids("SortedSegmentRangeLogSumExp", "$Gradient i0 o0 g0 i1 > 0")
@_by_ids("SortedSegmentRangeLogMeanExp", "$Gradient i0 o0 g0 i1 > 0")
def sorted_segment_range_log_exp(
    data: Tensor, segment_ids: Tensor, *, kind: OperatorType
) -> Tensor:
    """log(the sum or the mean of exp(x)) of the rows x of each segment."""
    rows, ids, n = _sorted(data, segment_ids)
    greatest = _max(rows, ids, n)
    return (
        torch.log(_reduced(kind, torch.exp(rows - greatest.index_select(0, ids)), ids, n))
        + greatest
    )
