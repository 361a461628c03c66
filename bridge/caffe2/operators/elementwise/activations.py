# SPDX-License-Identifier: Apache-2.0
"""Activations: y = f(x) of one float32 tensor, elementwise, and their gradients.

`out` may be the memory of x, so no function reads x after it has written `out`. The formulas are
those of Caffe2's CPU operators in PyTorch 1.8.1, even where they lose precision.

As in Caffe2, most gradients dx are computed from dy and the output y, some from the input x. Limits
are tensors without dimensions: torch compares with them in half the time of numbers, and where the
calls are recorded they are made once. The last ones have parameters, or are of parts of x: PRelu,
Glu, BatchBoxCox.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.channels import along_channels
from bridge.caffe2.operators.base.checks import (
    FLOATS,
    axis_from_front,
    image_order,
    require,
    shaped_like,
)
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few, takes_kernels
from bridge.caffe2.operators.base.gradients import declare_gradient
from bridge.caffe2.operators.elementwise import small_kernels

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
# Elements up to which a kernel computes tanh: 15 microseconds for as many, by torch 86 on one
# thread. For more, torch uses several.
MOST_BY_KERNEL = 1 << 15


@operator("Relu", inplace="0>0", gradient="$Gradient o0 g0 > 0")
def relu(x: Tensor, *, out: Out = None) -> Tensor:
    """y = max(x, 0)."""
    if takes_few(out, x):
        return run_kernel(small_kernels.relu, x, out, x.numel())
    return torch.relu(x) if out is None else torch.clamp_min(x, 0, out=out)


@operator("LeakyRelu", inplace="0>0", gradient="$Gradient o0 g0 > 0")
def leaky_relu(x: Tensor, *, alpha: float = 0.01, out: Out = None) -> Tensor:
    """y = x where x >= 0, else alpha * x."""
    if x.requires_grad:  # the gradient of 0 is the one of positive elements
        return torch.where(x >= x.new_zeros(()), x, x * alpha)
    return torch._C._nn.leaky_relu(x, alpha, out=out)


@operator("ThresholdedRelu", inplace="0>0", gradient="$Gradient o0 g0 > 0")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0, out: Out = None) -> Tensor:
    """y = x where x > alpha, else 0."""
    return torch.where(x > alpha, x, x.new_zeros(()), out=out)


@operator("Elu", inplace="0>0", gradient="$Gradient o0 g0 > 0")
def elu(x: Tensor, *, alpha: float = 1.0, out: Out = None) -> Tensor:
    """y = x where x >= 0, else alpha * (exp(x) - 1)."""
    if x.requires_grad:  # the gradient of 0 is the one of positive elements
        return torch.where(x >= 0, x, torch.expm1(torch.clamp_max(x, 0)) * alpha)
    return torch._C._nn.elu(x, alpha, out=out)  # type: ignore[call-arg]


@operator("Selu", inplace="0>0", gradient="$Gradient o0 g0 > 0")
def selu(
    x: Tensor, *, alpha: float = SELU_ALPHA, scale: float = SELU_SCALE, out: Out = None
) -> Tensor:
    """y = scale * x where x > 0, else scale * alpha * (exp(x) - 1)."""
    require(scale > 1, "scale is greater than 1", scale)
    below = torch.expm1(torch.clamp_max(x, 0)) * alpha
    return torch.mul(torch.where(x > 0, x, below), scale, out=out)


@operator("Sigmoid", inplace="0>0", gradient="$Gradient o0 g0 > 0")
def sigmoid(x: Tensor, *, out: Out = None) -> Tensor:
    """y = 1 / (1 + exp(-x))."""
    return torch.sigmoid(x, out=out)


@operator("Tanh", inplace="0>0", gradient="$Gradient o0 g0 > 0")
def tanh(x: Tensor, *, out: Out = None) -> Tensor:
    """y = tanh(x)."""
    # In the first run, too, which has no buffer: the last bits are not those of torch's vectors.
    if takes_kernels(x if out is None else out, x) and x.numel() <= MOST_BY_KERNEL:
        room = torch.empty_like(x) if out is None else out
        return run_kernel(small_kernels.tanh, x, room, x.numel())
    return torch.tanh(x, out=out)


@operator("Softplus", inplace="0>0", gradient="$Gradient o0 g0 > 0")
def softplus(x: Tensor, *, out: Out = None) -> Tensor:
    """y = log(exp(x) + 1): 0 for x below about -17, infinite above 88, as in Caffe2."""
    return torch.log(torch.exp(x) + 1, out=out)


@operator("Softsign", inplace="0>0", gradient="$Gradient i0! g0 > 0")
def softsign(x: Tensor, *, out: Out = None) -> Tensor:
    """y = x / (1 + |x|)."""
    return torch.div(x, torch.abs(x) + 1, out=out)


@operator("Swish", gradient="$Gradient i0 o0 g0 > 0")
def swish(x: Tensor, *, out: Out = None) -> Tensor:
    """y = x / (1 + exp(-x))."""
    return torch.mul(x, torch.sigmoid(x), out=out)


@operator("Mish", types=FLOATS, gradient="$Gradient i0 o0 g0 > 0")
def mish(x: Tensor, *, out: Out = None) -> Tensor:
    """y = x * tanh(log(1 + exp(x)))."""
    return torch.mul(x, torch.tanh(torch.log1p(torch.exp(x))), out=out)


@operator("Gelu", gradient="$Gradient g0 i0 > 0")
def gelu(x: Tensor, *, fast_gelu: bool = False, out: Out = None) -> Tensor:
    """y = x * cdf(x) of the normal distribution; `fast_gelu` approximates it by tanh."""
    if not fast_gelu and takes_few(x):  # torch calls oneDNN, which takes 7 microseconds
        return run_kernel(
            small_kernels.gelu, x, torch.empty_like(x) if out is None else out, x.numel()
        )
    kind = "tanh" if fast_gelu else "none"
    return torch._C._nn.gelu(x, approximate=kind, out=out)  # type: ignore[call-arg]


@operator("Logit", inplace="0>0", gradient="$Gradient i0! g0 > 0")
def logit(x: Tensor, *, eps: float = 1e-6, out: Out = None) -> Tensor:
    """y = log(x / (1 - x)), x clamped to [eps, 1 - eps]."""
    require(0 < eps < 0.5, "eps is greater than 0 and less than 0.5", eps)
    clamped = torch.clamp(x, eps, 1 - eps)
    return torch.log(clamped / (1 - clamped), out=out)


def _by_kernel(function: str, y: Tensor, dy: Tensor, out: Out, slope: float = 0.0) -> Tensor:
    made = torch.empty_like(y) if out is None else out
    return run_kernel(small_kernels.gradient, made, y, dy, function, slope, y.numel())


@operator("ReluGradient", inplace="1>0")
def relu_gradient(y: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy where y > 0, else 0."""
    dy = shaped_like(dy, y)
    if takes_kernels(y, dy):
        return _by_kernel("relu", y, dy, out)
    zero = dy.new_zeros(())
    return torch.where(y > zero, dy, zero, out=out)


@operator("ReluNGradient", inplace="1>0")
def relu_n_gradient(y: Tensor, dy: Tensor, *, n: float = 6.0, out: Out = None) -> Tensor:
    """dx = dy where 0 < y < n, else 0."""
    require(n > 0, "n is greater than 0", n)
    dy = shaped_like(dy, y)
    return torch.where((y > 0) & (y < n), dy, dy.new_zeros(()), out=out)


@operator("LeakyReluGradient", inplace="1>0")
def leaky_relu_gradient(y: Tensor, dy: Tensor, *, alpha: float = 0.01, out: Out = None) -> Tensor:
    """dx = dy where y >= 0, else alpha * dy."""
    dy = shaped_like(dy, y)
    if takes_kernels(y, dy):
        return _by_kernel("leaky_relu", y, dy, out, alpha)
    return torch.where(y < y.new_zeros(()), dy * alpha, dy, out=out)


@operator("EluGradient", inplace="1>0")
def elu_gradient(y: Tensor, dy: Tensor, *, alpha: float = 1.0, out: Out = None) -> Tensor:
    """dx = dy where y >= 0, else dy * (y + alpha)."""
    dy = shaped_like(dy, y)
    return torch.where(y < 0, dy * (y + alpha), dy, out=out)


@operator("SeluGradient", inplace="1>0")
def selu_gradient(
    y: Tensor, dy: Tensor, *, alpha: float = SELU_ALPHA, scale: float = SELU_SCALE, out: Out = None
) -> Tensor:
    """dx = dy * scale where y > 0, else dy * (y + scale * alpha)."""
    dy = shaped_like(dy, y)
    require(scale > 1, "scale is greater than 1", scale)
    return torch.where(y > 0, dy * scale, dy * (y + scale * alpha), out=out)


@operator("SigmoidGradient", inplace="1>0")
def sigmoid_gradient(y: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy * y * (1 - y)."""
    dy = shaped_like(dy, y)
    if takes_kernels(y, dy):
        return _by_kernel("sigmoid", y, dy, out)
    return torch.mul(dy, y * (y.new_ones(()) - y), out=out)


@operator("HardSigmoidGradient", inplace="1>0")
def hard_sigmoid_gradient(y: Tensor, dy: Tensor, *, alpha: float = 0.2, out: Out = None) -> Tensor:
    """dx = alpha * dy where 0 < y < 1, else 0."""
    dy = shaped_like(dy, y)
    return torch.where((y > 0) & (y < 1), dy * alpha, dy.new_zeros(()), out=out)


@operator("TanhGradient", inplace="1>0")
def tanh_gradient(y: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy * (1 - y^2)."""
    dy = shaped_like(dy, y)
    if takes_kernels(y, dy):
        return _by_kernel("tanh", y, dy, out)
    return torch.mul(dy, y.new_ones(()) - y * y, out=out)


declare_gradient("ThresholdedRelu", "dy * sign(y)", torch.sign, inplace="1>0")
declare_gradient("Softplus", "dy * (1 - exp(-y))", lambda y: 1 - torch.exp(-y), inplace="1>0")
declare_gradient(
    "Softsign",
    "dy / (1 + |x|)^2",
    lambda x: torch.square(torch.abs(x) + 1),
    torch.div,
    inplace="1>0",
)


@operator("SwishGradient", inplace="2>0")
def swish_gradient(x: Tensor, y: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy * (y + sigmoid(x) * (1 - y))."""
    y = shaped_like(y, x)
    dy = shaped_like(dy, x)
    return torch.mul(dy, torch.addcmul(y, torch.sigmoid(x), 1 - y), out=out)


@operator("MishGradient", types=FLOATS)
def mish_gradient(x: Tensor, y: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy * (t + x * (1 - t^2) * sigmoid(x)), t = tanh(log(1 + exp(x)))."""
    y = shaped_like(y, x)
    dy = shaped_like(dy, x)
    t = torch.tanh(torch.log1p(torch.exp(x)))
    return torch.mul(dy, torch.addcmul(t, x * (1 - t * t), torch.sigmoid(x)), out=out)


@operator("GeluGradient")
def gelu_gradient(dy: Tensor, x: Tensor, *, fast_gelu: bool = False, out: Out = None) -> Tensor:
    """dx = dy * (cdf(x) + x * pdf(x)) of the normal distribution; `fast_gelu`: that of tanh."""
    x, kind = shaped_like(x, dy), "tanh" if fast_gelu else "none"
    if not fast_gelu and takes_few(dy, x):
        made = torch.empty_like(dy) if out is None else out
        return run_kernel(small_kernels.gelu_gradient, made, dy, x, dy.numel())
    if out is None:
        return torch.ops.aten.gelu_backward(dy, x, approximate=kind)
    return torch.ops.aten.gelu_backward.grad_input(dy, x, approximate=kind, grad_input=out)


@operator("LogitGradient")
def logit_gradient(x: Tensor, dy: Tensor, *, eps: float = 1e-6, out: Out = None) -> Tensor:
    """dx = dy / (x * (1 - x)) where eps <= x <= 1 - eps, else 0."""
    dy = shaped_like(dy, x)
    outside = (x < eps) | (x > 1 - eps)
    return torch.where(outside, dy.new_zeros(()), dy / (x * (1 - x)), out=out)


def _slopes(w: Tensor, x: Tensor, order: str) -> Tensor:
    """Return a view of the slopes, one or one per channel, that broadcasts with X."""
    channel = 1 if image_order(order) == "NCHW" else x.dim() - 1
    return w.view(()) if w.numel() == 1 else along_channels(w, x, channel)


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
