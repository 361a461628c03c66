# SPDX-License-Identifier: Apache-2.0
"""Gradients of reductions over listed dimensions: (dY, X, Y) -> dX.

Follows ReduceGradientOp, caffe2/operators/reduce_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import NUMBERS, axis_from_front, require


def kept_sizes(x: Tensor, axes: list[int] | None) -> list[int]:
    """Return the sizes of X with 1 for the dimensions `axes`, by default all."""
    named = range(x.dim()) if axes is None else axes
    over = {axis_from_front(axis, x.dim()) for axis in named}
    return [1 if i in over else size for i, size in enumerate(x.shape)]


def _broadcast(dy: Tensor, x: Tensor, y: Tensor, axes: list[int] | None) -> tuple[Tensor, Tensor]:
    """Return dY and Y in sizes that broadcast with X."""
    sizes = kept_sizes(x, axes)
    require(dy.numel() == y.numel(), "dY has the shape of Y", dy, y)
    return dy.reshape(sizes), y.reshape(sizes)


@operator("ReduceSumGradient", types=NUMBERS)
def reduce_sum_gradient(
    dy: Tensor, x: Tensor, y: Tensor, *, axes: list[int] | None = None
) -> Tensor:
    """dX = dY."""
    dy, _ = _broadcast(dy, x, y, axes)
    return dy.expand(x.shape).clone(memory_format=torch.contiguous_format)


@operator("ReduceMeanGradient", types=NUMBERS)
def reduce_mean_gradient(
    dy: Tensor, x: Tensor, y: Tensor, *, axes: list[int] | None = None
) -> Tensor:
    """dX = dY / the number of elements."""
    share = _broadcast(dy, x, y, axes)[0] * (y.numel() / max(x.numel(), 1))
    return share.expand(x.shape).clone(memory_format=torch.contiguous_format)


@operator("ReduceMaxGradient", types=NUMBERS)
@operator("ReduceMinGradient", types=NUMBERS)
def reduce_extreme_gradient(
    dy: Tensor, x: Tensor, y: Tensor, *, axes: list[int] | None = None
) -> Tensor:
    """dX = dY where X equals Y, else 0."""
    dy, y = _broadcast(dy, x, y, axes)
    return dy * (x == y)


@operator("ReduceL1Gradient", types=NUMBERS)
def reduce_l1_gradient(
    dy: Tensor, x: Tensor, y: Tensor, *, axes: list[int] | None = None
) -> Tensor:
    """dX = dY * sign(X)."""
    return _broadcast(dy, x, y, axes)[0] * torch.sign(x)


@operator("ReduceL2Gradient", types=NUMBERS)
def reduce_l2_gradient(
    dy: Tensor, x: Tensor, y: Tensor, *, axes: list[int] | None = None
) -> Tensor:
    """dX = dY * X / Y; where Y is 0 it is dY, as in Caffe2."""
    dy, y = _broadcast(dy, x, y, axes)
    return torch.where(y > 0, dy * x / y, dy)
