# SPDX-License-Identifier: Apache-2.0
"""Reductions to one number, to a number per row, and to indices, with their gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.operators.base.checks import FLOATS, INT32, NUMBERS, require
from bridge.caffe2.operators.base.gradients import extreme_over


@operator("RowwiseMax", gradient="$Gradient i0 o0 g0 > 0")
@operator("ColwiseMax", gradient="$Gradient i0 o0 g0 > 0")
def max_along(x: Tensor, *, kind: OperatorType, out: Out = None) -> Tensor:
    """The maxima of rows (batch, m), or of columns (batch, n), of X (batch, m, n)."""
    dim = 2 if kind == "RowwiseMax" else 1
    require(x.dim() == 3, "X has three dimensions", x)
    if x.numel():
        return extreme_over(x, (dim,), False, True, out)
    kept = [size for i, size in enumerate(x.shape) if i != dim]
    require(0 in kept, "no maximum is of no elements", x)
    return x.new_zeros(kept)


@operator("RowwiseMaxGradient")
@operator("ColwiseMaxGradient", inputs="0-*", outputs="0-*")
def max_along_gradient(x: Tensor, y: Tensor, dy: Tensor, *, kind: OperatorType) -> Tensor:
    """(X: (batch, m, n), Y, dY) -> dX: dY where X equals Y, else 0."""
    dim = 2 if kind == "RowwiseMaxGradient" else 1
    require(x.dim() == 3, "X has three dimensions", x)
    return dy.unsqueeze(dim) * (x == y.unsqueeze(dim))


@operator("SumElements", gradient="$Gradient i0 g0 > 0")
def sum_elements(x: Tensor, *, average: bool = False) -> Tensor:
    """The sum of all elements, or their mean with `average`."""
    total = torch.sum(x)
    return total / x.numel() if average and x.numel() else total


@operator("SumElementsGradient", types={"dy": FLOATS})
def sum_elements_gradient(x: Tensor, dy: Tensor, *, average: bool = False) -> Tensor:
    """(X, dY: ()) -> dX = dY, divided by the number of elements with `average`."""
    require(dy.numel() == 1, "the gradient has one element", dy)
    share = dy.view(()) / (max(x.numel(), 1) if average else 1)
    return share.to(x.dtype).expand(x.shape).clone(memory_format=torch.contiguous_format)


@operator("SumElementsInt", types=INT32, gradient="undefined")
def sum_elements_int(x: Tensor) -> Tensor:
    """The sum of all elements, int32."""
    return torch.sum(x, dtype=torch.int32)


@operator("SumSqrElements", types=FLOATS)
def sum_sqr_elements(x: Tensor, *, average: bool = False) -> Tensor:
    """The sum of the squares of all elements, or their mean with `average`."""
    total = torch.sum(torch.square(x))
    return total / x.numel() if average and x.numel() else total


@operator("ReduceTailSum")
def reduce_tail_sum(x: Tensor, *, out: Out = None) -> Tensor:
    """The sum of each row: (n, ...) -> (n,)."""
    require(x.dim() > 0, "X has at least one dimension", x)
    return torch.sum(x.reshape(x.shape[0], math.prod(x.shape[1:])), 1, out=out)


@operator(
    "RowMul",
    gradient=(
        "RowMul g0 i1 > 0; Mul g0 i0 > d1+before_aggregate; ReduceTailSum d1+before_aggregate > 1"
    ),
)
def row_mul(x: Tensor, w: Tensor, *, out: Out = None) -> Tensor:
    """Each row of X times its number in w."""
    require(x.dim() > 0 and w.numel() == x.shape[0], "there is one number per row", w, x)
    return torch.mul(x, w.reshape(-1, *[1] * (x.dim() - 1)), out=out)


@operator("ArgMax", types=NUMBERS, gradient="undefined")
@operator("ArgMin", types=NUMBERS, gradient="undefined")
def arg_extreme(
    x: Tensor, *, axis: int = -1, keepdims: bool = True, kind: OperatorType, out: Out = None
) -> Tensor:
    """The index of the maximum or minimum along `axis`, the first of equal ones."""
    axis = x.dim() - 1 if axis == -1 else axis
    require(0 <= axis < x.dim(), f"axis is -1, or from 0 to below {x.dim()}", axis)
    if not x.numel():
        return torch.sum(x, axis, keepdims).long()
    function = torch.argmax if kind == "ArgMax" else torch.argmin
    return function(x, axis, keepdims, out=out)
