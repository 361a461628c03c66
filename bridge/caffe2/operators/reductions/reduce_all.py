# SPDX-License-Identifier: Apache-2.0
"""Reductions to one number, to a number per row, and to indices, with their gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.gradients.maker import GradientMaker
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


def _rows(x: Tensor, y: Tensor, replicate: bool) -> tuple[Tensor, Tensor]:
    """Return X and Y as matrices, each with its own width."""
    require(
        x.dim() == y.dim() > 0, "X and Y have the same number of dimensions, at least one", x, y
    )
    require(x.shape[0] == y.shape[0], "X and Y have the same number of rows", x, y)
    x, y = (one.reshape(one.shape[0], math.prod(one.shape[1:])) for one in (x, y))
    if replicate:
        require(min(x.shape[1], y.shape[1]) > 0, "rows to repeat are not empty", x, y)
    return x, y


def _filled(rows: Tensor, width: int, pad_value: float, replicate: bool) -> Tensor:
    """Return the rows padded or repeated to `width`."""
    if rows.shape[1] == width:
        return rows
    if replicate:
        return rows.repeat(1, width // rows.shape[1])
    return torch.constant_pad_nd(rows, (0, width - rows.shape[1]), pad_value)


def _dot_product_with_padding_gradient(maker: GradientMaker) -> None:
    arguments = {
        "pad_value": maker.argument("pad_value", 0.0),
        "replicate": bool(maker.argument("replicate", 0)),
    }
    inputs = [maker.I(0), maker.I(1), maker.GO(0)]
    maker.add("DotProductWithPaddingGradient", inputs, [maker.GI(0), maker.GI(1)], arguments)


@operator("DotProductWithPadding", gradient=_dot_product_with_padding_gradient)
def dot_product_with_padding(
    x: Tensor, y: Tensor, *, pad_value: float = 0.0, replicate: bool = False, out: Out = None
) -> Tensor:
    """(X: (N, ...), Y: (N, ...)) -> the sum of X * Y per row (N).

    Shorter rows are padded with `pad_value`, or repeated with `replicate`.
    Follows DotProductWithPaddingOp, caffe2/operators/distance_op.cc, PyTorch 1.8.1.
    """
    require(x.dim() == y.dim() and x.shape[:1] == y.shape[:1], "X and Y have the same rows", x, y)
    if not x.numel():
        return x.new_zeros(0)  # as in Caffe2, whatever the number of rows
    a, b = _rows(x, y, replicate)
    width = max(a.shape[1], b.shape[1])
    if replicate:  # a multiple of the shorter row
        width -= width % min(a.shape[1], b.shape[1])
    a, b = (_filled(one[:, :width], width, pad_value, replicate) for one in (a, b))
    return torch.sum(a * b, 1, out=out)


def _folded(gradient: Tensor, rows: Tensor, replicate: bool) -> Tensor:
    """Return the gradient of widened rows as that of `rows`."""
    width = rows.shape[1]
    if gradient.shape[1] == width:
        return gradient
    if replicate:
        return gradient.view(rows.shape[0], gradient.shape[1] // width, width).sum(1)
    return gradient[:, :width].contiguous()


@operator("DotProductWithPaddingGradient")
def dot_product_with_padding_gradient(
    x: Tensor, y: Tensor, dz: Tensor, *, pad_value: float = 0.0, replicate: bool = False
) -> tuple[Tensor, Tensor]:
    """(X, Y, dZ: (N)) -> dX, dY."""
    a, b = _rows(x, y, replicate)
    short, long = sorted((a.shape[1], b.shape[1]))
    if replicate:
        require(long % short == 0, "one row length divides the other", x, y)
    dz = dz.view(-1, 1)
    dx = dz * _filled(b, long, pad_value, replicate)
    dy = dz * _filled(a, long, pad_value, replicate)
    return _folded(dx, a, replicate).view(x.shape), _folded(dy, b, replicate).view(y.shape)


def _scale(x: Tensor, average: bool) -> float:
    return 1 / x.numel() if average and x.numel() else 1.0


@operator("LpNorm", gradient="$Gradient i0 g0 > 0")
def lp_norm(x: Tensor, *, p: int = 2, average: bool = False) -> Tensor:
    """Y (1) = the sum of |X|^p, p being 1 or 2, without a root.

    Follows LpNormOp, caffe2/operators/lpnorm_op.cc, PyTorch 1.8.1.
    """
    require(p in (1, 2), "p is 1 or 2", p)
    require(x.numel() > 0 or not average, "a mean is of some elements", x)
    flat = x.reshape(-1)
    total = torch.dot(flat, flat) if p == 2 else torch.sum(torch.abs(flat))
    return (total * _scale(x, average)).view(1)


@operator("LpNormGradient")
def lp_norm_gradient(
    x: Tensor, dy: Tensor, *, p: int = 2, average: bool = False, out: Out = None
) -> Tensor:
    """(X, dY: (1)) -> dX."""
    require(p in (1, 2), "p is 1 or 2", p)
    require(dy.dim() == 1 and dy.numel() == 1, "the gradient has one element", dy)
    slope = torch.sign(x) if p == 1 else 2 * x
    return torch.mul(slope, dy.view(()) * _scale(x, average), out=out)
