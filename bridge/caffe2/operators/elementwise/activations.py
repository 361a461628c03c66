# SPDX-License-Identifier: Apache-2.0
"""Activations: y = f(x) of one float32 tensor, elementwise.

`out` may be the memory of x, so no function reads x after it has written `out`. The formulas are
those of Caffe2's CPU operators in PyTorch 1.8.1, even where they lose precision.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import FLOATS, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few, takes_kernels
from bridge.caffe2.operators.elementwise import small_kernels

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
GELU_SLOPE = math.sqrt(2 / math.pi)  # in the approximation by tanh
GELU_CUBIC = 0.044715
# Elements up to which a kernel computes tanh: 15 microseconds for as many, by torch 86 on one
# thread. For more, torch uses several.
MOST_BY_KERNEL = 1 << 15


@operator("Relu", inplace="0>0", gradient="ReluGradient o0 g0 > 0")
def relu(x: Tensor, *, out: Out = None) -> Tensor:
    """y = max(x, 0)."""
    if takes_few(out, x):
        return run_kernel(small_kernels.relu, x, out, x.numel())
    return torch.relu(x) if out is None else torch.clamp_min(x, 0, out=out)


@operator("LeakyRelu", inplace="0>0", gradient="LeakyReluGradient o0 g0 > 0")
def leaky_relu(x: Tensor, *, alpha: float = 0.01, out: Out = None) -> Tensor:
    """y = x where x >= 0, else alpha * x."""
    if x.requires_grad:  # the gradient of 0 is the one of positive elements
        return torch.where(x >= x.new_zeros(()), x, x * alpha)
    return torch._C._nn.leaky_relu(x, alpha, out=out)


@operator("ThresholdedRelu", inplace="0>0", gradient="ThresholdedReluGradient o0 g0 > 0")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0, out: Out = None) -> Tensor:
    """y = x where x > alpha, else 0."""
    return torch.where(x > alpha, x, x.new_zeros(()), out=out)


@operator("Elu", inplace="0>0", gradient="EluGradient o0 g0 > 0")
def elu(x: Tensor, *, alpha: float = 1.0, out: Out = None) -> Tensor:
    """y = x where x >= 0, else alpha * (exp(x) - 1)."""
    if x.requires_grad:  # the gradient of 0 is the one of positive elements
        return torch.where(x >= 0, x, torch.expm1(torch.clamp_max(x, 0)) * alpha)
    return torch._C._nn.elu(x, alpha, out=out)  # type: ignore[call-arg]


@operator("Selu", inplace="0>0", gradient="SeluGradient o0 g0 > 0")
def selu(
    x: Tensor, *, alpha: float = SELU_ALPHA, scale: float = SELU_SCALE, out: Out = None
) -> Tensor:
    """y = scale * x where x > 0, else scale * alpha * (exp(x) - 1)."""
    require(scale > 1, "scale is greater than 1", scale)
    below = torch.expm1(torch.clamp_max(x, 0)) * alpha
    return torch.mul(torch.where(x > 0, x, below), scale, out=out)


@operator("Sigmoid", inplace="0>0", gradient="SigmoidGradient o0 g0 > 0")
def sigmoid(x: Tensor, *, out: Out = None) -> Tensor:
    """y = 1 / (1 + exp(-x))."""
    return torch.sigmoid(x, out=out)


@operator("Tanh", inplace="0>0", gradient="TanhGradient o0 g0 > 0")
def tanh(x: Tensor, *, out: Out = None) -> Tensor:
    """y = tanh(x)."""
    # In the first run, too, which has no buffer: the last bits are not those of torch's vectors.
    if takes_kernels(x if out is None else out, x) and x.numel() <= MOST_BY_KERNEL:
        room = torch.empty_like(x) if out is None else out
        return run_kernel(small_kernels.tanh, x, room, x.numel())
    return torch.tanh(x, out=out)


@operator("Softplus", inplace="0>0", gradient="SoftplusGradient o0 g0 > 0")
def softplus(x: Tensor, *, out: Out = None) -> Tensor:
    """y = log(exp(x) + 1): 0 for x below about -17, infinite above 88, as in Caffe2."""
    return torch.log(torch.exp(x) + 1, out=out)


@operator("Softsign", inplace="0>0", gradient="SoftsignGradient i0! g0 > 0")
def softsign(x: Tensor, *, out: Out = None) -> Tensor:
    """y = x / (1 + |x|)."""
    return torch.div(x, torch.abs(x) + 1, out=out)


@operator("Swish", gradient="SwishGradient i0 o0 g0 > 0")
def swish(x: Tensor, *, out: Out = None) -> Tensor:
    """y = x / (1 + exp(-x))."""
    return torch.mul(x, torch.sigmoid(x), out=out)


@operator("Mish", types=FLOATS, gradient="MishGradient i0 o0 g0 > 0")
def mish(x: Tensor, *, out: Out = None) -> Tensor:
    """y = x * tanh(log(1 + exp(x)))."""
    return torch.mul(x, torch.tanh(torch.log1p(torch.exp(x))), out=out)


@operator("Gelu", gradient="GeluGradient g0 i0 > 0")
def gelu(x: Tensor, *, fast_gelu: bool = False, out: Out = None) -> Tensor:
    """y = x * cdf(x) of the normal distribution; `fast_gelu` approximates it by tanh."""
    kind = "tanh" if fast_gelu else "none"
    return torch._C._nn.gelu(x, approximate=kind, out=out)  # type: ignore[call-arg]


@operator("Logit", inplace="0>0", gradient="LogitGradient i0! g0 > 0")
def logit(x: Tensor, *, eps: float = 1e-6, out: Out = None) -> Tensor:
    """y = log(x / (1 - x)), x clamped to [eps, 1 - eps]."""
    require(0 < eps < 0.5, "eps is greater than 0 and less than 0.5", eps)
    clamped = torch.clamp(x, eps, 1 - eps)
    return torch.log(clamped / (1 - clamped), out=out)
