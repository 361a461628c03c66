# SPDX-License-Identifier: Apache-2.0
"""Gradients of unary functions: from the gradient dy of the output, that of the input, dx.

Some are computed from the input x of the function, some from its output y; the parameters of each
function are the inputs of the operator, in order. Follows the operators in caffe2/operators/,
PyTorch 1.8.1.
"""

from __future__ import annotations

import math

from bridge.caffe2.operators.base.elementwise_function import elementwise
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import LARGEST, NUMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__: list[str] = []


@elementwise("AbsGradient")
def abs_gradient(op: FloatOperator, x: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy where x > 0, -dy where x < 0, else 0."""
    torch.where(x > 0, dy, -dy, out=dx).masked_fill_(x == 0, 0)


@elementwise("AcosGradient")
def acos_gradient(op: FloatOperator, x: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = -dy / sqrt(1 - x^2)."""
    torch.mul(dy, (1 - x * x).rsqrt_().neg_(), out=dx)


@elementwise("AsinGradient")
def asin_gradient(op: FloatOperator, x: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy / sqrt(1 - x^2)."""
    torch.mul(dy, (1 - x * x).rsqrt_(), out=dx)


@elementwise("AtanGradient")
def atan_gradient(op: FloatOperator, x: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy / (1 + x^2)."""
    torch.div(dy, 1 + x * x, out=dx)


@elementwise("CosGradient")
def cos_gradient(op: FloatOperator, x: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = -dy * sin(x)."""
    torch.mul(dy, x.sin().neg_(), out=dx)


@elementwise("SinGradient")
def sin_gradient(op: FloatOperator, x: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy * cos(x)."""
    torch.mul(dy, x.cos(), out=dx)


@elementwise("TanGradient")
def tan_gradient(op: FloatOperator, x: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy / cos(x)^2."""
    torch.div(dy, x.cos().square_(), out=dx)


@elementwise("CoshGradient")
def cosh_gradient(op: FloatOperator, dy: Tensor, x: Tensor, dx: Tensor) -> None:
    """dx = dy * sinh(x)."""
    torch.mul(dy, x.sinh(), out=dx)


@elementwise("SinhGradient")
def sinh_gradient(op: FloatOperator, dy: Tensor, x: Tensor, dx: Tensor) -> None:
    """dx = dy * cosh(x)."""
    torch.mul(dy, x.cosh(), out=dx)


@elementwise("ErfGradient")
def erf_gradient(op: FloatOperator, x: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy * 2 / sqrt(pi) * exp(-x^2)."""
    torch.mul(dy, (-x * x).exp_().mul_(2 / math.sqrt(math.pi)), out=dx)


@elementwise("CbrtGradient")
def cbrt_gradient(op: FloatOperator, dy: Tensor, y: Tensor, dx: Tensor) -> None:
    """dx = dy / (3 * y^2)."""
    torch.div(dy, 3 * y * y, out=dx)


@elementwise("CubeGradient", NUMBERS)
def cube_gradient(op: FloatOperator, dy: Tensor, x: Tensor, dx: Tensor) -> None:
    """dx = dy * 3 * x^2."""
    torch.mul(dy, 3 * x * x, out=dx)


@elementwise("ReciprocalGradient")
def reciprocal_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = -dy * y^2."""
    torch.mul(dy, -y * y, out=dx)


@elementwise("RsqrtGradient")
def rsqrt_gradient(op: FloatOperator, dy: Tensor, y: Tensor, dx: Tensor) -> None:
    """dx = -dy * y^3 / 2."""
    torch.mul(dy, y**3 * -0.5, out=dx)


@elementwise("ClipGradient")
def clip_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy where min < y < max, else 0; arguments `min`, `max`."""
    low = op.GetSingleArgument("min", -LARGEST)
    high = op.GetSingleArgument("max", LARGEST)
    torch.mul(dy, (y > low) & (y < high), out=dx)
