# SPDX-License-Identifier: Apache-2.0
"""Gradients of the activations: from the gradient dy of the output, the gradient dx of the input.

As in Caffe2, most are computed from the output y of the activation, some from its input x. Limits
are tensors without dimensions: torch compares with them in half the time of numbers, and where the
calls are recorded they are made once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import FLOATS, require, shaped_like
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.elementwise import small_kernels
from bridge.caffe2.operators.elementwise.activations import SELU_ALPHA, SELU_SCALE


def _by_kernel(
    kernel: Callable[..., Any], y: Tensor, dy: Tensor, out: Out, *settings: float
) -> Tensor:
    made = torch.empty_like(y) if out is None else out
    return run_kernel(kernel, made, y, dy, *settings, y.numel())


@operator("ReluGradient", inplace="1>0")
def relu_gradient(y: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy where y > 0, else 0."""
    dy = shaped_like(dy, y)
    if takes_kernels(y, dy):
        return _by_kernel(small_kernels.relu_gradient, y, dy, out)
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
        return _by_kernel(small_kernels.leaky_relu_gradient, y, dy, out, alpha)
    return torch.where(y < y.new_zeros(()), dy * alpha, dy, out=out)


@operator("ThresholdedReluGradient", inplace="1>0")
def thresholded_relu_gradient(y: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy * sign(y)."""
    dy = shaped_like(dy, y)
    return torch.mul(dy, torch.sign(y), out=out)


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
        return _by_kernel(small_kernels.sigmoid_gradient, y, dy, out)
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
        return _by_kernel(small_kernels.tanh_gradient, y, dy, out)
    return torch.mul(dy, y.new_ones(()) - y * y, out=out)


@operator("SoftplusGradient", inplace="1>0")
def softplus_gradient(y: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy * (1 - exp(-y))."""
    dy = shaped_like(dy, y)
    return torch.mul(dy, 1 - torch.exp(-y), out=out)


@operator("SoftsignGradient", inplace="1>0")
def softsign_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy / (1 + |x|)^2."""
    dy = shaped_like(dy, x)
    return torch.div(dy, torch.square(torch.abs(x) + 1), out=out)


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
    made = torch.empty_like(dy) if out is None else out
    return torch.ops.aten.gelu_backward.grad_input(dy, x, approximate=kind, grad_input=made)


@operator("LogitGradient")
def logit_gradient(x: Tensor, dy: Tensor, *, eps: float = 1e-6, out: Out = None) -> Tensor:
    """dx = dy / (x * (1 - x)) where eps <= x <= 1 - eps, else 0."""
    dy = shaped_like(dy, x)
    outside = (x < eps) | (x > 1 - eps)
    return torch.where(outside, dy.new_zeros(()), dy / (x * (1 - x)), out=out)
