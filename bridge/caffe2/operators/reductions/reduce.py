# SPDX-License-Identifier: Apache-2.0
"""Reductions over the dimensions in `axes`, all by default, kept with size 1 with `keepdims`."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.operators.base.checks import NUMBERS, axis_from_front
from bridge.caffe2.operators.base.gradients import extreme_over


def _dims(x: Tensor, axes: list[int] | None) -> list[int]:
    """Return the dimensions to reduce, counted from the front."""
    return sorted({axis_from_front(axis, x.dim()) for axis in axes or range(x.dim())})


@operator("ReduceSum", types=NUMBERS, gradient="ReduceSumGradient g0 i0 o0 > 0")
def reduce_sum(
    x: Tensor, *, axes: list[int] | None = None, keepdims: bool = True, out: Out = None
) -> Tensor:
    """Sums."""
    return torch.sum(x, _dims(x, axes), keepdims, dtype=x.dtype, out=out)


@operator("ReduceMean", gradient="ReduceMeanGradient g0 i0 o0 > 0")
def reduce_mean(
    x: Tensor, *, axes: list[int] | None = None, keepdims: bool = True, out: Out = None
) -> Tensor:
    """Means; of no elements 0."""
    dims = _dims(x, axes)
    if not x.numel():
        return torch.sum(x, dims, keepdims)
    return torch.mean(x, dims, keepdims, out=out)


@operator("ReduceMax", types=NUMBERS, gradient="ReduceMaxGradient g0 i0 o0 > 0")
@operator("ReduceMin", types=NUMBERS, gradient="ReduceMinGradient g0 i0 o0 > 0")
def reduce_extreme(
    x: Tensor,
    *,
    axes: list[int] | None = None,
    keepdims: bool = True,
    kind: OperatorType,
    out: Out = None,
) -> Tensor:
    """The maxima or minima; of no elements the opposite limit of the type."""
    dims, greatest = _dims(x, axes), kind == "ReduceMax"
    if x.numel():
        return extreme_over(x, dims, keepdims, greatest, out)
    info = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
    nothing = torch.sum(x, dims, keepdims, dtype=x.dtype)
    return torch.full_like(nothing, info.min if greatest else info.max)


@operator("ReduceL1", gradient="ReduceL1Gradient g0 i0 o0 > 0")
def reduce_l1(
    x: Tensor, *, axes: list[int] | None = None, keepdims: bool = True, out: Out = None
) -> Tensor:
    """Sums of absolute values."""
    return torch.sum(torch.abs(x), _dims(x, axes), keepdims, out=out)


@operator("ReduceL2", gradient="ReduceL2Gradient g0 i0 o0 > 0")
def reduce_l2(
    x: Tensor, *, axes: list[int] | None = None, keepdims: bool = True, out: Out = None
) -> Tensor:
    """Square roots of sums of squares."""
    return torch.linalg.vector_norm(x, 2, _dims(x, axes), keepdims, out=out)
