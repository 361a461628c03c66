# SPDX-License-Identifier: Apache-2.0
"""Convolution in one, two and three dimensions, in either order, and its gradients.

NHWC runs as torch's channels_last on views of the same memory, so nothing is transposed. Beside it
are transposed convolution, and locally connected layers, with a separate filter per window.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.checks import image_order, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.windows import (
    NOTSET,
    Window,
    Windows,
    added_up,
    by_rank,
    convolution_gradient,
    pair,
    wanted_gradients,
    windows_of,
)
from bridge.caffe2.operators.images import image_kernels

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
        y = run_kernel(image_kernels.convolve, x, y, w, bias, *sizes)
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


class TransposedWindows(Windows):
    """The windows of ConvTranspose.

    Arguments: those of Windows without dilation and global pooling; `adj`, `adj_h` and `adj_w`, or
    `adjs` (0): how much larger the output is at its end; legacy_pad other than 0: no padding.
    """

    takes = f"{Windows.takes}, int adj, int adj_h, int adj_w, int[] adjs"

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.adj = pair(arguments, "adj") or [0] * len(self.kernel)
        require(len(self.adj) == len(self.kernel), "there is one adj per kernel size", self.adj)
        kernel, stride, adj = self.kernel, self.stride, self.adj
        fits = min(*kernel, *stride) > 0 and min(adj) >= 0
        require(fits, "kernel and stride are positive, adj is not negative", kernel, stride, adj)
        fits = all(one <= step for one, step in zip(adj, stride, strict=True))
        require(fits, "adj is at most the stride", adj, stride)
        pads = self.pads if self.legacy == NOTSET else [0] * 2 * len(self.kernel)
        require(min(pads) >= 0, "pads are not negative", pads)
        self.head, self.tail = pads[: len(pads) // 2], pads[len(pads) // 2 :]

    def sizes(self, x: Tensor) -> list[int]:
        """Return height and width of the output. Raises EnforceNotMet: pads are too large."""
        found = [
            (x.shape[i + 2] - 1) * self.stride[i]
            + self.kernel[i]
            + self.adj[i]
            - self.head[i]
            - self.tail[i]
            for i in range(2)
        ]
        require(min(found) >= 0, "the output has no negative size", found)
        return found


def _transposed_operands(
    x: Tensor, w: Tensor, windows: TransposedWindows, group: int, order: str
) -> tuple[Tensor, Tensor]:
    """Return X (N, C, H, W) and the filter (C, M / group, kernel_h, kernel_w)."""
    x, w = channels_first(x, order), channels_first(w, order)
    require(x.dim() == 4 and w.dim() == 4, "X and the filter have 4 dimensions", x, w)
    require(x.shape[1] == w.shape[0], "X has one channel per row of the filter", x, w)
    require(x.shape[1] % group == 0, "the number of channels is divisible by group", x)
    require(list(w.shape[2:]) == list(windows.kernel), "the filter has the size of the kernel", w)
    require(0 not in x.shape[1:], "an image has at least one element", x)
    return x, w


@operator("ConvTranspose", gradient=convolution_gradient)
def conv_transpose(
    x: Tensor,
    filter: Tensor,
    bias: Tensor | None = None,
    *,
    windows: TransposedWindows,
    group: int = 1,
    order: str = "NCHW",
) -> Tensor:
    """X: (N, C, H, W), filter: (C, M / group, kernel...), optionally bias: (M) -> (N, M, ...).

    A size of Y is (d - 1) * stride + kernel + adj - pads. In the order NHWC X is (N, H, W, C) and
    the filter (C, kernel..., M / group).
    Raises EnforceNotMet: shapes do not match.
    Follows ConvTransposeOp, caffe2/operators/conv_transpose_op_impl.h, PyTorch 1.8.1.
    """
    order = image_order(order)
    x, w = _transposed_operands(x, filter, windows, group, order)
    outputs = w.shape[1] * group
    require(bias is None or bias.shape == (outputs,), "there is one bias per output", bias)
    sizes = windows.sizes(x)
    if min(sizes) == 0:
        return channels_last(x.new_empty(x.shape[0], outputs, *sizes), order)
    stride, adj = windows.stride, windows.adj
    if windows.head == windows.tail and all(
        after < step for after, step in zip(adj, stride, strict=True)
    ):
        y = torch.conv_transpose2d(x, w, bias, stride, windows.head, adj, group)
    else:
        y = torch.conv_transpose2d(x, w, None, stride, 0, 0, group)
        (top, left), (low, right) = windows.head, windows.tail
        y = torch.constant_pad_nd(y, (-left, adj[1] - right, -top, adj[0] - low))
        if bias is not None:
            y = y + bias.view(-1, 1, 1)
    return channels_last(y, order)


@operator("ConvTransposeGradient", outputs="1-3")
def conv_transpose_gradient(
    x: Tensor,
    filter: Tensor,
    dy: Tensor,
    *,
    windows: TransposedWindows,
    group: int = 1,
    order: str = "NCHW",
    no_bias: int = 0,
    outputs: OutputCount = 3,
) -> tuple[Tensor, ...]:
    """(X, filter, dY) -> dfilter, dbias unless `no_bias`, dX if there is an output for it.

    Raises EnforceNotMet: shapes do not match.
    Follows ConvTransposeGradientOp, caffe2/operators/conv_transpose_op_impl.h, PyTorch 1.8.1.
    """
    order = image_order(order)
    x, w = _transposed_operands(x, filter, windows, group, order)
    dy = channels_first(dy, order)
    # (torch does not compare them, and reads outside of dY)
    sizes = (x.shape[0], w.shape[1] * group, *windows.sizes(x))
    require(dy.shape == sizes, "dY has the sizes of Y", dy, x, w)
    has_bias, has_dx = wanted_gradients(no_bias, outputs)
    # Elements in the padding, and those added by adj, are not computed by the filter.
    (top, left), (low, right) = windows.head, windows.tail
    sides = (left, right - windows.adj[1], top, low - windows.adj[0])
    padded, zeros, wanted = torch.constant_pad_nd(dy, sides), [0, 0], [has_dx, True, False]
    dx, dw, _ = torch.ops.aten.convolution_backward(
        padded, x, w, None, windows.stride, zeros, [1, 1], True, zeros, group, wanted
    )
    found = [channels_last(dw, order)]
    if has_bias:
        found.append(dy.sum((0, 2, 3)))
    if has_dx:
        found.append(channels_last(dx, order))
    return tuple(found)


def _local_operands(
    x: Tensor, w: Tensor, windows: Windows, group: int, order: str
) -> tuple[Window, Tensor, Tensor]:
    """Return the windows, their elements (N, C, windows, kernel elements), and the filter.

    X: (N, C, ...), filter: (windows..., M, C, kernel...); in the order NHWC the filter is
    (windows..., M, kernel..., C). The result is (windows, M, C, kernel elements). `group` must be
    1: with more groups Caffe2's operator crashes.
    """
    require(group == 1, "group is 1", group)
    rank = x.dim() - 2
    require(1 <= rank <= 3, "X has one to three spatial dimensions", x)
    fits = w.dim() == 2 * rank + 2
    require(fits, "the filter has dimensions for windows, outputs, channels and kernel", w)
    window = windows.on(x.shape[2:])
    require(set(window.dilation) == {1}, "dilation is 1", window.dilation)
    require(list(w.shape[:rank]) == list(window.sizes), "there is one filter per window", w)
    w = w.movedim(-1, rank + 1) if order == "NHWC" else w
    kernel = list(w.shape[rank + 2 :])
    require(kernel == list(window.kernel), "the filter has the size of the kernel", w)
    require(x.shape[1] == w.shape[rank + 1], "X has as many channels as the filter", x, w)
    places, elements = math.prod(window.sizes), math.prod(window.kernel)
    cut = windows_of(window.padded(x), window).reshape(*x.shape[:2], places, elements)
    return window, cut, w.reshape(places, w.shape[rank], x.shape[1], elements)


@by_rank("LC", gradient=convolution_gradient)
def locally_connected(
    x: Tensor,
    filter: Tensor,
    bias: Tensor | None = None,
    *,
    windows: Windows,
    group: int = 1,
    order: str = "NCHW",
) -> Tensor:
    """(X, filter, optionally bias: (windows..., M)) -> Y: (N, M, ...).

    X: (N, C, ...), filter: (windows..., M, C, kernel...); in the order NHWC X: (N, ..., C), filter:
    (windows..., M, kernel..., C). For the arguments see Windows; `group` must be 1.
    Follows LocallyConnectedOp, caffe2/operators/locally_connected_op_impl.h, PyTorch 1.8.1.
    """
    order = image_order(order)
    x = channels_first(x, order)
    window, cut, filters = _local_operands(x, filter, windows, group, order)
    outputs = filters.shape[1]
    y = torch.einsum("ncyk,ymck->nmy", cut, filters)
    if bias is not None:
        fits = list(bias.shape) == [*window.sizes, outputs]
        require(fits, "there is one bias per element of Y's images", bias)
        y = y + bias.view(-1, outputs).t()
    return channels_last(y.reshape(x.shape[0], outputs, *window.sizes), order)


@by_rank("LC", "Gradient", inputs="2-3", outputs="1-3")
def locally_connected_gradient(
    x: Tensor,
    filter: Tensor,
    dy: Tensor,
    *,
    windows: Windows,
    group: int = 1,
    order: str = "NCHW",
    no_bias: int = 0,
    outputs: OutputCount = 3,
) -> tuple[Tensor, ...]:
    """(X, filter, dY) -> dfilter, dbias unless `no_bias`, and dX if there is an output for it."""
    order = image_order(order)
    x, dy = channels_first(x, order), channels_first(dy, order)
    window, cut, filters = _local_operands(x, filter, windows, group, order)
    has_bias, has_dx = wanted_gradients(no_bias, outputs)
    places, rank = filters.shape[0], len(window.sizes)
    rows = dy.reshape(x.shape[0], filters.shape[1], places)
    dw = torch.einsum("ncyk,nmy->ymck", cut, rows)
    dw = dw.reshape(*window.sizes, filters.shape[1], x.shape[1], *window.kernel)
    found = [dw.movedim(rank + 1, -1) if order == "NHWC" else dw]
    if has_bias:
        found.append(dy.sum(0).movedim(0, -1))
    if has_dx:
        parts = torch.einsum("ymck,nmy->ncyk", filters, rows)
        parts = parts.reshape(*x.shape[:2], *window.sizes, *window.kernel)
        found.append(channels_last(added_up(parts, x.shape, window), order))
    return tuple(found)
