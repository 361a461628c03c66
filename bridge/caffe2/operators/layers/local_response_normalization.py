# SPDX-License-Identifier: Apache-2.0
"""LRN, local response normalization over neighbouring channels, and its gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.checks import image_order, require, shaped_like
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.defined_mode import first_buffer
from bridge.caffe2.operators.layers import channel_kernels


def _summed(values: Tensor, size: int) -> Tensor:
    """Return the sum over the `size` nearest channels of each channel (N, C, H, W)."""
    channels = values.shape[1]
    size = min(size, 2 * channels + 1)  # which are all channels
    if size == 1:
        return values
    before = (size - 1) // 2
    padded = torch.constant_pad_nd(values, (0, 0, 0, 0, before, size - 1 - before))
    total = padded.narrow(1, 0, channels) + padded.narrow(1, 1, channels)
    for i in range(2, size):
        total = total.add_(padded.narrow(1, i, channels))
    return total


def _base(x: Tensor, size: int, alpha: float, bias: float) -> Tensor:
    """Return the base of the power; X: (N, C, H, W)."""
    require(size > 0, "size is positive", size)
    require(x.dim() == 4, "X has 4 dimensions", x)
    return (_summed(x * x, size) * (alpha / size)).add_(bias)


def _power(base: Tensor, beta: float) -> Tensor:
    """Return base^-beta; roots are faster than powers."""
    if beta != 0.75:
        return base.pow(-beta)
    root = torch.rsqrt(base)
    return root * torch.sqrt(root)


@operator("LRN", outputs="1-2", gradient="$Gradient i0 o0 g0 > 0")
def lrn(
    x: Tensor,
    *,
    size: int = 0,
    alpha: float = 0.0,
    beta: float = 0.0,
    bias: float = 1.0,
    order: str = "NCHW",
    outputs: OutputCount = 1,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """Y = X / (bias + alpha / size * sum of X^2 over the `size` nearest channels)^beta.

    X -> Y and, if there is a second output, the base of the power.
    Follows LRNOp, caffe2/operators/local_response_normalization_op.cc, PyTorch 1.8.1.
    """
    order = image_order(order)
    x = channels_first(x, order)
    room = first_buffer(out)
    if order == "NCHW" and beta == 0.75 and takes_kernels(x) and x.dim() == 4 and x.numel():
        require(size > 0, "size is positive", size)
        y = torch.empty_like(x) if room is None else room
        base = torch.empty_like(x) if out is None or outputs == 1 else out[1]
        numbers = (*x.shape[:2], x.shape[2] * x.shape[3], size, alpha / size, bias)
        y = run_kernel(channel_kernels.local_response, x, y, base, *numbers)
        return (y, base) if outputs == 2 else (y,)
    base = _base(x, size, alpha, bias)
    if room is None:
        found = channels_last(x * _power(base, beta), order)
    else:
        torch.mul(x, _power(base, beta), out=channels_first(room, order))
        found = room
    return (found, channels_last(base, order).detach()) if outputs == 2 else (found,)


@operator("LRNGradient", defaults=lrn)
def lrn_gradient(
    x: Tensor,
    y: Tensor,
    dy: Tensor,
    *,
    size: int,
    alpha: float,
    beta: float,
    bias: float,
    order: str,
) -> Tensor:
    """(X, Y, dY) -> dX, the gradient of LRN; the same arguments."""
    order = image_order(order)
    x, y, dy = (channels_first(shaped_like(one, x), order) for one in (x, y, dy))
    base = _base(x, size, alpha, bias)
    around = _summed(y * dy / base, size) * (-2 * alpha * beta / size)
    return channels_last(torch.addcmul(dy * _power(base, beta), x, around), order)
