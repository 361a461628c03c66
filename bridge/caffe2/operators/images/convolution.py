# SPDX-License-Identifier: Apache-2.0
"""Convolution in one, two and three dimensions, in either order, and its gradients.

NHWC runs as torch's channels_last on views of the same memory, so nothing is transposed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.checks import image_order, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.windows import (
    Window,
    Windows,
    by_rank,
    convolution_gradient,
    wanted_gradients,
)
from bridge.caffe2.operators.images import convolution_kernels

# Products up to which a kernel computes a convolution: 22 microseconds for as many, by torch 24;
# for twice as many 60 and 34. The user is a net on small images, as of `binary._MOST_BY_CHANNEL`.
_MOST_PRODUCTS = 1 << 18


class ConvolutionWindows(Windows):
    """Windows of a convolution."""

    __slots__ = ()

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        require(not self.is_global, "global_pooling is not set")


def _operands(
    x: Tensor, w: Tensor, windows: Windows, group: int, order: str
) -> tuple[Tensor, Tensor, Window]:
    """Return X (N, C, ...), the filter (M, C / group, ...) and the windows."""
    require(3 <= x.dim() <= 5, "X has one to three spatial dimensions", x)
    require(x.dim() == w.dim(), "X and the filter have as many dimensions", x, w)
    x, w = channels_first(x, order), channels_first(w, order)
    require(
        x.shape[1] == w.shape[1] * group, "X has as many channels as the filter, times group", x, w
    )
    require(w.shape[0] % group == 0, "the number of outputs is divisible by group", w)
    require(list(w.shape[2:]) == list(windows.kernel), "the filter has the size of the kernel", w)
    require(0 not in x.shape[1:], "an image has at least one element", x)
    return x, w, windows.on(x.shape[2:])


@by_rank("Conv", gradient=convolution_gradient)
def conv(
    x: Tensor,
    filter: Tensor,
    bias: Tensor | None = None,
    *,
    windows: ConvolutionWindows,
    group: int = 1,
    order: str = "NCHW",
    activation: str = "",
    out: Out = None,
) -> Tensor:
    """X: (N, C, ...), filter: (M, C / group, kernel...), optionally bias: (M) -> Y: (N, M, ...).

    In the order NHWC X is (N, ..., C), the filter (M, kernel..., C / group) and Y (N, ..., M). For
    the arguments see Windows. `activation` "Relu" computes max(Y, 0), as convolutions by NNPACK do.
    Raises EnforceNotMet: shapes do not match.
    Follows ConvOp, caffe2/operators/conv_op_impl.h, PyTorch 1.8.1.
    """
    order = image_order(order)
    x, w, window = _operands(x, filter, windows, group, order)
    fits = bias is None or bias.shape == w.shape[:1]
    require(fits, "the bias has one dimension, with one value per output", bias)
    if min(window.sizes) <= 0:
        return channels_last(x.new_empty(x.shape[0], w.shape[0], *window.sizes), order)
    y: Tensor
    if order == "NCHW" and _is_small(x, w, bias, window):
        y = x.new_empty(x.shape[0], w.shape[0], *window.sizes) if out is None else out
        sizes = (*x.shape, w.shape[0], group, *w.shape[2:], *window.head, *window.sizes)
        y = run_kernel(convolution_kernels.convolve, x, y, w, bias, *sizes)
        return torch.relu_(y) if activation == "Relu" else y
    if order == "NCHW" and group == 1 and x.shape[0] == 1 and _is_pointwise(window):
        y = _pointwise(x, w, bias, out)
        return torch.relu_(y) if activation == "Relu" else y
    convolve = getattr(torch, f"conv{x.dim() - 2}d")
    pads = window.head
    if not window.is_even:
        x, pads = window.padded(x), [0] * len(pads)
    y = convolve(x, w, bias, window.stride, pads, window.dilation, group)
    if activation == "Relu":
        y = torch.relu(y)
    return channels_last(y, order)


def _is_small(x: Tensor, w: Tensor, bias: Tensor | None, window: Window) -> bool:
    """Return whether the kernel for small images computes this."""
    if x.dim() != 4 or not takes_kernels(x, w, *(() if bias is None else (bias,))):
        return False  # (asked first: sizes may be symbols where torch traces)
    if {*window.stride, *window.dilation} != {1} or min(*window.head, *window.tail) < 0:
        return False
    # (a row of the result is computed with the elements between it and the next)
    products = x.shape[0] * w.numel() * window.sizes[0] * (window.sizes[1] + w.shape[3] - 1)
    most = _MOST_PRODUCTS if w.shape[2] * w.shape[3] > 1 else _MOST_PRODUCTS // 4
    return products <= most


def _is_pointwise(window: Window) -> bool:
    """Return whether each window is one element, and a product of matrices the convolution.

    Not in a program that is to be exported or compiled, which keeps its convolutions.
    """
    return (
        {*window.kernel, *window.stride} == {1}
        and not any(window.head)
        and not any(window.tail)
        and not torch.compiler.is_compiling()
    )


def _pointwise(x: Tensor, w: Tensor, bias: Tensor | None, out: Out) -> Tensor:
    matrix, weights = x.view(x.shape[1], -1), w.view(w.shape[0], -1)
    room = None if out is None else out.view(w.shape[0], -1)
    if bias is None:
        y = torch.mm(weights, matrix, out=room)
    else:
        y = torch.addmm(bias.view(-1, 1), weights, matrix, out=room)
    return out if out is not None else y.view(1, w.shape[0], *x.shape[2:])


@operator("ConvRelu")
def conv_relu(
    x: Tensor,
    filter: Tensor,
    bias: Tensor | None = None,
    *,
    windows: ConvolutionWindows,
    group: int = 1,
    order: str = "NCHW",
) -> Tensor:
    """max(Conv, 0)."""
    return torch.relu(conv(x, filter, bias, windows=windows, group=group, order=order))


@operator("ConvFusion", inplace="2>0,3>0", inputs="2-4")
def conv_fusion(
    x: Tensor,
    filter: Tensor,
    *others: Tensor,
    windows: ConvolutionWindows,
    fusion_type: int,
    group: int = 1,
    order: str = "NCHW",
) -> Tensor:
    """X and filter, optionally bias, and the addend S if there is a sum -> Y, as of Conv.

    `fusion_type` 1: Relu(Conv), 2: Conv + S, 3: Relu(Conv + S).
    Raises EnforceNotMet: shapes do not match, another `fusion_type`, or a sum without S.
    Follows IDEEPConvFusionOp, caffe2/ideep/operators/conv_op.cc, PyTorch 1.8.1.
    """
    require(fusion_type in (1, 2, 3), "fusion_type is 1 (Relu), 2 (sum) or 3 (both)", fusion_type)
    addends = 0 if fusion_type == 1 else 1
    biases = others[: len(others) - addends]
    require(addends <= len(others) < 2 + addends, "there are X, a filter, a bias and S", *others)
    y = conv(x, filter, *biases, windows=windows, group=group, order=order)
    if addends:
        require(others[-1].shape == y.shape, "S has the sizes of the result", others[-1], y)
        y = y + others[-1]
    return y if fusion_type == 2 else torch.relu(y)


@by_rank("Conv", "Gradient", inputs="2-3", outputs="1-3")
def conv_gradient(
    x: Tensor,
    filter: Tensor,
    dy: Tensor,
    *,
    windows: ConvolutionWindows,
    group: int = 1,
    order: str = "NCHW",
    no_bias: int = 0,
    outputs: OutputCount = 3,
) -> tuple[Tensor, ...]:
    """(X, filter, dY) -> dfilter, dbias unless `no_bias`, and dX if there is an output for it.

    Raises EnforceNotMet: shapes do not match.
    Follows ConvGradientOp, caffe2/operators/conv_op_impl.h, PyTorch 1.8.1.
    """
    order = image_order(order)
    x, w, window = _operands(x, filter, windows, group, order)
    dy = channels_first(dy, order)
    # (torch does not compare them, and reads outside of dY)
    require(dy.shape == (x.shape[0], w.shape[0], *window.sizes), "dY has the sizes of Y", dy, x, w)
    has_bias, has_dx = wanted_gradients(no_bias, outputs)
    padded = x if window.is_even else window.padded(x)
    zeros = [0] * len(window.head)
    steps = (window.stride, window.head if padded is x else zeros, window.dilation)
    wanted = [has_dx, True, has_bias]
    dx, dw, db = torch.ops.aten.convolution_backward(
        dy, padded, w, w.shape[:1], *steps, False, zeros, group, wanted
    )
    found = [channels_last(dw, order)]
    if has_bias:
        found.append(db)
    if has_dx:
        found.append(channels_last(dx if padded is x else window.unpadded(dx), order))
    return tuple(found)
