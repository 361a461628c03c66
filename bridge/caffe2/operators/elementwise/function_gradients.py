# SPDX-License-Identifier: Apache-2.0
"""Gradients of unary functions: from the gradient dy of the output, the gradient dx of the input.

Some are computed from the input x of the function, some from its output y. Follows the operators in
caffe2/operators/, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import LARGEST, NUMBERS, shaped_like


@operator("AbsGradient")
def abs_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy where x > 0, -dy where x < 0, else 0."""
    dy = shaped_like(dy, x)
    signed = torch.where(x > 0, dy, -dy)
    return torch.where(x == 0, dy.new_zeros(()), signed, out=out)


@operator("AcosGradient")
def acos_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = -dy / sqrt(1 - x^2)."""
    dy = shaped_like(dy, x)
    return torch.mul(dy, -torch.rsqrt(1 - x * x), out=out)


@operator("AsinGradient")
def asin_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy / sqrt(1 - x^2)."""
    dy = shaped_like(dy, x)
    return torch.mul(dy, torch.rsqrt(1 - x * x), out=out)


@operator("AtanGradient")
def atan_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy / (1 + x^2)."""
    dy = shaped_like(dy, x)
    return torch.div(dy, 1 + x * x, out=out)


@operator("CosGradient")
def cos_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = -dy * sin(x)."""
    dy = shaped_like(dy, x)
    return torch.mul(dy, -torch.sin(x), out=out)


@operator("SinGradient")
def sin_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy * cos(x)."""
    dy = shaped_like(dy, x)
    return torch.mul(dy, torch.cos(x), out=out)


@operator("TanGradient")
def tan_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy / cos(x)^2."""
    dy = shaped_like(dy, x)
    return torch.div(dy, torch.square(torch.cos(x)), out=out)


@operator("CoshGradient")
def cosh_gradient(dy: Tensor, x: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy * sinh(x)."""
    x = shaped_like(x, dy)
    return torch.mul(dy, torch.sinh(x), out=out)


@operator("SinhGradient")
def sinh_gradient(dy: Tensor, x: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy * cosh(x)."""
    x = shaped_like(x, dy)
    return torch.mul(dy, torch.cosh(x), out=out)


@operator("ErfGradient")
def erf_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy * 2 / sqrt(pi) * exp(-x^2)."""
    dy = shaped_like(dy, x)
    return torch.mul(dy, torch.exp(-x * x) * (2 / math.sqrt(math.pi)), out=out)


@operator("CbrtGradient", inplace="0>0")
def cbrt_gradient(dy: Tensor, y: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy / (3 * y^2)."""
    y = shaped_like(y, dy)
    return torch.div(dy, 3 * y * y, out=out)


@operator("CubeGradient", types=NUMBERS)
def cube_gradient(dy: Tensor, x: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy * 3 * x^2."""
    x = shaped_like(x, dy)
    return torch.mul(dy, 3 * x * x, out=out)


@operator("ReciprocalGradient", inplace="1>0")
def reciprocal_gradient(y: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = -dy * y^2."""
    dy = shaped_like(dy, y)
    return torch.mul(dy, -y * y, out=out)


@operator("RsqrtGradient", inplace="0>0")
def rsqrt_gradient(dy: Tensor, y: Tensor, *, out: Out = None) -> Tensor:
    """dx = -dy * y^3 / 2."""
    y = shaped_like(y, dy)
    return torch.mul(dy, torch.pow(y, 3) * -0.5, out=out)


@operator("ClipGradient", inplace="1>0")
def clip_gradient(
    y: Tensor, dy: Tensor, *, min: float = -LARGEST, max: float = LARGEST, out: Out = None
) -> Tensor:
    """dx = dy where min < y < max, else 0."""
    dy = shaped_like(dy, y)
    return torch.mul(dy, (y > min) & (y < max), out=out)
