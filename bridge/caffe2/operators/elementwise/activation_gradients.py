# SPDX-License-Identifier: Apache-2.0
"""Gradients of the activations: from the gradient dy of the output, that of the input, dx.

As in Caffe2, most are computed from the output y of the activation, some from its input x; the
parameters of each function are the inputs of the operator, in order.
"""

from __future__ import annotations

import math

from bridge.caffe2.operators.base.elementwise_function import elementwise
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOATS
from bridge.caffe2.operators.elementwise.activations import (
    GELU_CUBIC,
    GELU_SLOPE,
    SELU_ALPHA,
    SELU_SCALE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__: list[str] = []


@elementwise("ReluGradient")
def relu_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy where y > 0, else 0."""
    torch.where(y > 0, dy, dy.new_zeros(()), out=dx)


@elementwise("ReluNGradient")
def relu_n_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy where 0 < y < n, else 0."""
    torch.where((y > 0) & (y < op.GetSingleArgument("n", 6.0)), dy, dy.new_zeros(()), out=dx)


@elementwise("LeakyReluGradient")
def leaky_relu_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy where y >= 0, else alpha * dy."""
    torch.where(y < 0, dy * op.GetSingleArgument("alpha", 0.01), dy, out=dx)


@elementwise("ThresholdedReluGradient")
def thresholded_relu_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy * sign(y)."""
    torch.mul(dy, y.sign(), out=dx)


@elementwise("EluGradient")
def elu_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy where y >= 0, else dy * (y + alpha)."""
    torch.where(y < 0, dy * (y + op.GetSingleArgument("alpha", 1.0)), dy, out=dx)


@elementwise("SeluGradient")
def selu_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy * scale where y > 0, else dy * (y + scale * alpha)."""
    scale = op.GetSingleArgument("scale", SELU_SCALE)
    op.enforce(scale > 1, "scale is greater than 1", scale)
    low = scale * op.GetSingleArgument("alpha", SELU_ALPHA)
    torch.where(y > 0, dy * scale, dy * (y + low), out=dx)


@elementwise("SigmoidGradient")
def sigmoid_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy * y * (1 - y)."""
    torch.mul(dy, y * (1 - y), out=dx)


@elementwise("HardSigmoidGradient")
def hard_sigmoid_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = alpha * dy where 0 < y < 1, else 0."""
    inside = (y > 0) & (y < 1)
    torch.mul(dy, op.GetSingleArgument("alpha", 0.2), out=dx).masked_fill_(~inside, 0)


@elementwise("TanhGradient")
def tanh_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy * (1 - y^2)."""
    torch.mul(dy, 1 - y * y, out=dx)


@elementwise("SoftplusGradient")
def softplus_gradient(op: FloatOperator, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy * (1 - exp(-y))."""
    torch.mul(dy, 1 - torch.exp(-y), out=dx)


@elementwise("SoftsignGradient")
def softsign_gradient(op: FloatOperator, x: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy / (1 + |x|)^2."""
    torch.mul(dy, (1 + x.abs()).square_().reciprocal_(), out=dx)


@elementwise("SwishGradient")
def swish_gradient(op: FloatOperator, x: Tensor, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy * (y + sigmoid(x) * (1 - y))."""
    torch.mul(dy, torch.addcmul(y, torch.sigmoid(x), 1 - y), out=dx)


@elementwise("MishGradient", FLOATS)
def mish_gradient(op: FloatOperator, x: Tensor, y: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy * (t + x * (1 - t^2) * sigmoid(x)), t = tanh(log(1 + exp(x)))."""
    t = torch.exp(x).log1p_().tanh_()
    torch.mul(dy, torch.addcmul(t, x * (1 - t * t), torch.sigmoid(x)), out=dx)


@elementwise("GeluGradient")
def gelu_gradient(op: FloatOperator, dy: Tensor, x: Tensor, dx: Tensor) -> None:
    """dx = dy * (cdf(x) + x * pdf(x)) of the normal distribution; `fast_gelu`: that of tanh."""
    if op.GetSingleArgument("fast_gelu", False):
        t = (x + GELU_CUBIC * x**3).mul_(GELU_SLOPE).tanh_()
        slope = (GELU_SLOPE * (1 + 3 * GELU_CUBIC * x * x)).mul_(1 - t * t)
        torch.mul(dy, (1 + t + x * slope).mul_(0.5), out=dx)
    else:
        cdf = torch.erf(x * math.sqrt(0.5)).add_(1).mul_(0.5)
        pdf = torch.exp(-0.5 * x * x).mul_(1 / math.sqrt(2 * math.pi))
        torch.mul(dy, torch.addcmul(cdf, x, pdf), out=dx)


@elementwise("LogitGradient")
def logit_gradient(op: FloatOperator, x: Tensor, dy: Tensor, dx: Tensor) -> None:
    """dx = dy / (x * (1 - x)) where eps <= x <= 1 - eps, else 0."""
    eps = op.GetSingleArgument("eps", 1e-6)
    outside = (x < eps) | (x > 1 - eps)
    torch.div(dy, x * (1 - x), out=dx).masked_fill_(outside, 0)
