# SPDX-License-Identifier: Apache-2.0
"""Functions with parameters, or of parts of their input: PRelu, Glu, BatchBoxCox."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import FLOATS, axis_from_front, image_order, require


def _slopes(w: Tensor, x: Tensor, order: str) -> Tensor:
    """Return a view of the slopes, one or one per channel, that broadcasts with X."""
    channel = 1 if image_order(order) == "NCHW" else x.dim() - 1
    if w.numel() == 1:
        return w.view(())
    require(0 <= channel < x.dim(), "X has a channel dimension", x)
    require(w.numel() == x.shape[channel], "there is one value per channel", w, x)
    return w.view([-1 if i == channel else 1 for i in range(x.dim())])


@operator("PRelu", inplace="0>0", gradient="$Gradient o0 g0 i0 i1 > 0 1")
def prelu(x: Tensor, slope: Tensor, *, order: str = "NCHW", out: Out = None) -> Tensor:
    """Y = X where X > 0, else slope * X.

    Raises EnforceNotMet: there is neither one slope nor one per channel.
    Follows PReluOp, caffe2/operators/prelu_op.cc, PyTorch 1.8.1.
    """
    slopes = _slopes(slope, x, order)
    if slope.numel() == 1 or image_order(order) == "NCHW":
        return torch.prelu(x, slope.view(-1))
    return torch.where(x > 0, x, x * slopes, out=out)


@operator("PReluGradient")
def prelu_gradient(
    y: Tensor, dy: Tensor, x: Tensor, slope: Tensor, *, order: str = "NCHW"
) -> tuple[Tensor, Tensor]:
    """(Y, dY, X, slope) -> dX, dslope.

    Follows PReluGradientOp, caffe2/operators/prelu_op.cc, PyTorch 1.8.1.
    """
    slopes = _slopes(slope, x, order)
    require(y.shape == x.shape == dy.shape, "X, Y and dY have the same shape", x, y, dy)
    dx, below = torch.ops.aten._prelu_kernel_backward(dy, x, slopes)
    if slope.numel() == 1:
        return dx, below.sum().view(slope.shape)
    channel = 1 if image_order(order) == "NCHW" else x.dim() - 1
    others = [i for i in range(x.dim()) if i != channel]
    return dx, (below.sum(others) if others else below).view(slope.shape)


@operator("Glu")
def glu(x: Tensor, *, dim: int = -1, out: Out = None) -> Tensor:
    """Y = A * sigmoid(B), where A and B are the halves of X along dimension `dim`.

    Raises EnforceNotMet: the size of the dimension is odd.
    Follows GluOp, caffe2/operators/glu_op.h.
    """
    dim = axis_from_front(dim, x.dim())
    require(x.shape[dim] % 2 == 0, "the size of the dimension is even", x)
    half = x.shape[dim] // 2
    return torch.mul(x.narrow(dim, 0, half), torch.sigmoid(x.narrow(dim, half, half)), out=out)


@operator("BatchBoxCox", inplace="0>0", types=FLOATS, gradient="unimplemented")
def batch_box_cox(x: Tensor, lambda1: Tensor, lambda2: Tensor) -> Tensor:
    """(X: (N, D), a: (D), b: (D)) -> (max(X + b, 1e-6)^a - 1) / a, or the logarithm if a is 0.

    Follows BatchBoxCoxOp, caffe2/operators/batch_box_cox_op.cc, PyTorch 1.8.1.
    """
    require(x.dim() >= 1, "X has at least one dimension", x)
    rows = x.reshape(x.shape[0], math.prod(x.shape[1:]))
    for values in (lambda1, lambda2):
        require(values.numel() == rows.shape[1], "a and b have one element per column", values, x)
    base = torch.clamp(rows + lambda2.view(-1), min=1e-6)
    a = lambda1.view(-1)
    power = (torch.pow(base, a) - 1) / torch.where(a == 0, a.new_ones(()), a)
    return torch.where(a == 0, torch.log(base), power).view(x.shape)
