# SPDX-License-Identifier: Apache-2.0
"""DotProductWithPadding and LpNorm, with their gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import require


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
