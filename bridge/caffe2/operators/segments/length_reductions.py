# SPDX-License-Identifier: Apache-2.0
"""Sums, means and maxima of the rows of segments given by their lengths.

`SparseLengths...` reduce the rows of the data at indices: a look-up in a table of embeddings.
Lengths add up to the number of rows or indices. Follows segment_reduction_op.h and
lengths_reducer_ops.h in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.gradients.patterns import by_argument
from bridge.caffe2.operators.base import length_kernels
from bridge.caffe2.operators.base.checks import INT32, INTS, has_values, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.gradients import gradient_alone
from bridge.caffe2.operators.base.rows_and_segments import (
    flat_weights,
    positions_in_segments,
    segment_ids,
    select_rows,
    sum_segments,
)

BY_LENGTHS = {"lengths": INT32}
# Caffe2 has lengths of int32; NumPy 2 makes int64 of them where NumPy 1 did not.
LOOK_UP = {"data": (c10.float32, c10.float16), "indices": INTS, "lengths": INTS}


def _check(data: Tensor, lengths: Tensor) -> None:
    require(data.dim() > 0, "the data have at least one dimension", data)
    require(lengths.dim() == 1, "the lengths have one dimension", lengths)


@operator(
    "LengthsSum", types=BY_LENGTHS, gradient="LengthsIndicesInGradientSumGradient g0 i1 i0 > 0"
)
@operator(
    "LengthsMean", types=BY_LENGTHS, gradient="LengthsIndicesInGradientMeanGradient g0 i1 i0 > 0"
)
def lengths_sum(data: Tensor, lengths: Tensor, *, kind: OperatorType, out: Out = None) -> Tensor:
    """The sum, or the mean, of the rows of each segment; 0 for no rows."""
    _check(data, lengths)
    return sum_segments(data, None, lengths, kind.removeprefix("Lengths").lower(), out=out)


@operator(
    "LengthsWeightedSum",
    types=BY_LENGTHS,
    gradient=by_argument(
        "grad_on_weights", 0, "$WithMainInputGradient i1 g0 i2 i0 > 0 1", "$Gradient i1 g0 i2 > 0"
    ),
)
def lengths_weighted_sum(
    data: Tensor, weights: Tensor, lengths: Tensor, *, out: Out = None
) -> Tensor:
    """The sum of the rows of each segment times their weights."""
    _check(data, lengths)
    return sum_segments(data, None, lengths, "sum", flat_weights(weights, data.shape[0]), out)


@operator(
    "LengthsMax",
    types=BY_LENGTHS,
    gradient="LengthsMaxWithMainInputAndForwardOutputGradient o0 g0 i1 i0 > 0",
)
def lengths_max(data: Tensor, lengths: Tensor, *, out: Out = None) -> Tensor:
    """The maximum of the rows of each segment, elementwise; 0 for no rows."""
    _check(data, lengths)
    if takes_kernels(data) and takes_kernels(lengths, dtype=lengths.dtype):
        n, segments, row = data.shape[0], lengths.shape[0], data.shape[1:]
        made = data.new_empty((segments, *row)) if out is None else out
        return run_kernel(
            length_kernels.greatest_by_lengths, made, data, lengths, n, row.numel(), segments
        )
    greatest = sum_segments(data.detach(), None, lengths, "max")
    if not data.requires_grad:
        return greatest
    # All maxima of a segment get its gradient, as in Caffe2: their value is 0 here.
    ids = segment_ids(lengths, data.shape[0])
    at_maximum = torch.where(data == greatest[ids], gradient_alone(data), 0.0)
    return greatest.index_add(0, ids, at_maximum)


def _looked_up(
    data: Tensor,
    indices: Tensor,
    lengths: Tensor,
    mode: str = "sum",
    weights: Tensor | None = None,
    out: Out = None,
) -> Tensor:
    """Return the reduction of the rows at indices, at least float32; without indices it is 0."""
    fits = data.dim() > 0 and lengths.dim() > 0
    require(fits, "data and lengths have at least one dimension", data, lengths)
    if not indices.numel():
        wide = torch.promote_types(data.dtype, torch.float32)
        return data.new_zeros((lengths.shape[0], *data.shape[1:]), dtype=wide)
    fits = indices.dim() == 1 and lengths.dim() == 1
    require(fits, "indices and lengths have one dimension", indices, lengths)
    if weights is not None:
        weights = flat_weights(weights, indices.shape[0])
    if data.dtype.itemsize < 4:
        data = select_rows(data, indices).float()
        indices = torch.arange(indices.shape[0], device=data.device, dtype=torch.int64)
    return sum_segments(data, indices, lengths, mode, weights, out)


@operator(
    "SparseLengthsSum",
    types=LOOK_UP,
    gradient="SparseLengthsIndicesInGradientSumGradient g0 i2 i1 > 0@1",
)
@operator(
    "SparseLengthsMean",
    types=LOOK_UP,
    gradient="SparseLengthsIndicesInGradientMeanGradient g0 i2 i1 > 0@1",
)
@operator("SparseLengthsMax", types=LOOK_UP, devices=("cuda",))  # and without a schema, in Caffe2
def sparse_lengths(
    data: Tensor, indices: Tensor, lengths: Tensor, *, kind: OperatorType, out: Out = None
) -> Tensor:
    """The sum, mean or maxima of the rows at the indices of each segment, 0 for none; float32."""
    mode = kind.removeprefix("SparseLengths").lower()
    return _looked_up(data, indices, lengths, mode, out=out)


@operator(
    "SparseLengthsWeightedSum",
    types=LOOK_UP,
    gradient=by_argument(
        "grad_on_weights",
        0,
        "SparseLengthsIndicesInGradientWeightedSumWithMainInputGradient i1 g0 i3 i0 i2 > 0@2 1",
        "SparseLengthsIndicesInGradientWeightedSumGradient i1 g0 i3 i2 > 0@2",
    ),
)
def sparse_lengths_weighted_sum(
    data: Tensor, weights: Tensor, indices: Tensor, lengths: Tensor, *, out: Out = None
) -> Tensor:
    """The sum of the rows at the indices of each segment, times the weights of the indices."""
    return _looked_up(data, indices, lengths, weights=weights, out=out)


@operator("SparseLengthsPositionalWeightedSum", types=LOOK_UP)
def sparse_lengths_positional_weighted_sum(
    data: Tensor, weights: Tensor, indices: Tensor, lengths: Tensor
) -> Tensor:
    """The sum of the rows at the indices, times the weight of their position in the segment."""
    if not indices.numel():
        return _looked_up(data, indices, lengths)
    require(lengths.dim() == 1, "the lengths have one dimension", lengths)
    n = indices.shape[0]
    places = positions_in_segments(lengths, segment_ids(lengths, n))
    longest = int(places.max()) + 1 if has_values(places) else 0
    fits = weights.dim() == 1 and longest <= weights.numel()
    require(fits, f"there are weights for a length of {longest}", weights)
    return _looked_up(data, indices, lengths, weights=weights.index_select(0, places))
