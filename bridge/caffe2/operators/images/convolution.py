# SPDX-License-Identifier: Apache-2.0
"""Convolution in one, two and three dimensions, in either order, and its gradients.

NHWC runs as torch's channels_last on views of the same memory, so nothing is transposed. Beside it
are transposed convolution, and locally connected layers, with a separate filter per window.

All raise EnforceNotMet if shapes do not match. The gradients are (X, filter, dY) -> dfilter, dbias
unless `no_bias`, and dX if there is an output for it. Follows conv_op_impl.h,
conv_transpose_op_impl.h and locally_connected_op_impl.h in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.windows import (
    NOTSET,
    Window,
    Windows,
    added_up,
    by_rank,
    convolution_gradient,
    pair,
    windows_of,
)
from bridge.caffe2.operators.images import image_kernels

# Products up to which a kernel computes a convolution: 22 microseconds for as many, by torch 24;
# for twice as many 60 and 34. The user is a net on small images, as of `binary._MOST_BY_CHANNEL`.
_MOST_PRODUCTS = 1 << 18


class FilterWindows(Windows):
    """Windows that a filter is applied to.

    Arguments: those of Windows, `group` (1), and `no_bias` (0) of gradients.
    """

    takes = f"{Windows.takes}, int group, int no_bias"

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.group: int = arguments.single("group", 1)
        self.no_bias = bool(arguments.single("no_bias", 0))

    def wanted(self, outputs: int) -> tuple[bool, bool]:
        """Return whether the gradients of X and of the bias are outputs, besides the filter's.

        Raises EnforceNotMet: there are too many outputs.
        """
        require(not self.no_bias or outputs < 3, "there are two outputs with `no_bias`", outputs)
        return outputs == 3 - self.no_bias, not self.no_bias


class Convolution(FilterWindows):
    """The windows of a convolution. `activation` Relu: max(Y, 0), as convolutions by NNPACK do."""

    takes = f"{FilterWindows.takes}, str activation"

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.rectifies = arguments.single("activation", "") == "Relu"
        require(not self.is_global, "global_pooling is not set")


def _require_fit(x: Tensor, w: Tensor, windows: Windows) -> None:
    """Check an image (N, C, ...) and a filter (..., kernel)."""
    require(list(w.shape[2:]) == list(windows.kernel), "the filter has the size of the kernel", w)
    require(0 not in x.shape[1:], "an image has at least one element", x)


def _operands(x: Tensor, w: Tensor, windows: FilterWindows) -> tuple[Tensor, Tensor, Window]:
    """Return X (N, C, ...), the filter (M, C / group, ...) and the windows."""
    require(3 <= x.dim() <= 5, "X has one to three spatial dimensions", x)
    require(x.dim() == w.dim(), "X and the filter have as many dimensions", x, w)
    x, w, group = windows.order.first(x), windows.order.first(w), windows.group
    fits = x.shape[1] == w.shape[1] * group
    require(fits, "X has as many channels as the filter, times group", x, w)
    require(w.shape[0] % group == 0, "the number of outputs is divisible by group", w)
    _require_fit(x, w, windows)
    return x, w, windows.on(x.shape[2:])


@by_rank("Conv", gradient=convolution_gradient)
def conv(
    x: Tensor, filter: Tensor, bias: Tensor | None = None, *, windows: Convolution, out: Out = None
) -> Tensor:
    """X: (N, C, ...), filter: (M, C / group, kernel...), optionally bias: (M) -> Y: (N, M, ...).

    In the order NHWC X is (N, ..., C), the filter (M, kernel..., C / group) and Y (N, ..., M). For
    the arguments see Windows and Convolution.
    """
    order = windows.order
    x, w, window = _operands(x, filter, windows)
    fits = bias is None or bias.shape == w.shape[:1]
    require(fits, "the bias has one dimension, with one value per output", bias)
    if min(window.sizes) <= 0:
        return order.last(x.new_empty(x.shape[0], w.shape[0], *window.sizes))
    if order.is_first and _is_small(x, w, bias, window):
        y = x.new_empty(x.shape[0], w.shape[0], *window.sizes) if out is None else out
        sizes = (*x.shape, w.shape[0], windows.group, *w.shape[2:], *window.head, *window.sizes)
        y = run_kernel(image_kernels.convolve, x, y, w, bias, *sizes)
        return torch.relu_(y) if windows.rectifies else y
    # A program that is to be exported or compiled keeps its convolutions.
    is_product = window.is_pointwise and windows.group == 1 and not torch.compiler.is_compiling()
    if is_product and order.is_first and x.shape[0] == 1:
        y = _pointwise(x, w, bias, out)
        return torch.relu_(y) if windows.rectifies else y
    convolve = getattr(torch, f"conv{x.dim() - 2}d")
    pads = window.head
    if not window.is_even:
        x, pads = window.padded(x), [0] * len(pads)
    y = convolve(x, w, bias, window.stride, pads, window.dilation, windows.group)
    return order.last(torch.relu(y) if windows.rectifies else y)


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


def _pointwise(x: Tensor, w: Tensor, bias: Tensor | None, out: Out) -> Tensor:
    """Return the convolution of one image by windows of one element: a product of matrices."""
    matrix, weights = x.view(x.shape[1], -1), w.view(w.shape[0], -1)
    room = None if out is None else out.view(w.shape[0], -1)
    if bias is None:
        y = torch.mm(weights, matrix, out=room)
    else:
        y = torch.addmm(bias.view(-1, 1), weights, matrix, out=room)
    return out if out is not None else y.view(1, w.shape[0], *x.shape[2:])


@operator("ConvRelu")
def conv_relu(
    x: Tensor, filter: Tensor, bias: Tensor | None = None, *, windows: Convolution
) -> Tensor:
    """max(Conv, 0)."""
    return torch.relu(conv(x, filter, bias, windows=windows))


@operator("ConvFusion", inplace="2>0,3>0", inputs="2-4")
def conv_fusion(
    x: Tensor, filter: Tensor, *others: Tensor, windows: Convolution, fusion_type: int
) -> Tensor:
    """X and filter, optionally bias, and the addend S if there is a sum -> Y, as of Conv.

    `fusion_type` 1: Relu(Conv), 2: Conv + S, 3: Relu(Conv + S).
    Raises EnforceNotMet: another `fusion_type`, or a sum without S.
    Follows IDEEPConvFusionOp, caffe2/ideep/operators/conv_op.cc, PyTorch 1.8.1.
    """
    require(fusion_type in (1, 2, 3), "fusion_type is 1 (Relu), 2 (sum) or 3 (both)", fusion_type)
    addends = 0 if fusion_type == 1 else 1
    biases = others[: len(others) - addends]
    require(addends <= len(others) < 2 + addends, "there are X, a filter, a bias and S", *others)
    y = conv(x, filter, *biases, windows=windows)
    if addends:
        require(others[-1].shape == y.shape, "S has the sizes of the result", others[-1], y)
        y = y + others[-1]
    return y if fusion_type == 2 else torch.relu(y)


def _given(*gradients: Tensor | None) -> tuple[Tensor, ...]:
    """Return those of the gradients of filter, bias and X that are wanted."""
    return tuple(one for one in gradients if one is not None)


@by_rank("Conv", "Gradient", inputs="2-3", outputs="1-3")
def conv_gradient(
    x: Tensor, filter: Tensor, dy: Tensor, *, windows: Convolution, outputs: OutputCount = 3
) -> tuple[Tensor, ...]:
    """The gradients of Conv."""
    order = windows.order
    x, w, window = _operands(x, filter, windows)
    dy = order.first(dy)
    # (torch does not compare them, and reads outside of dY)
    require(dy.shape == (x.shape[0], w.shape[0], *window.sizes), "dY has the sizes of Y", dy, x, w)
    has_dx, has_bias = windows.wanted(outputs)
    padded = x if window.is_even else window.padded(x)
    zeros = [0] * len(window.head)
    steps = (window.stride, window.head if padded is x else zeros, window.dilation)
    dx, dw, db = torch.ops.aten.convolution_backward(
        *(dy, padded, w, w.shape[:1], *steps, False, zeros, windows.group),
        [has_dx, True, has_bias],
    )
    if has_dx:
        dx = order.last(dx if padded is x else window.unpadded(dx))
    return _given(order.last(dw), db if has_bias else None, dx if has_dx else None)


class TransposedWindows(FilterWindows):
    """The windows of ConvTranspose.

    Arguments: those of FilterWindows without dilation and global pooling; `adj`, `adj_h` and
    `adj_w`, or `adjs` (0): how much larger the output is at its end; legacy_pad other than 0: no
    padding.
    """

    takes = f"{FilterWindows.takes}, int adj, int adj_h, int adj_w, int[] adjs"

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
        added = [self.kernel[i] + self.adj[i] - self.head[i] - self.tail[i] for i in range(2)]
        found = [(x.shape[i + 2] - 1) * self.stride[i] + added[i] for i in range(2)]
        require(min(found) >= 0, "the output has no negative size", found)
        return found


def _transposed_operands(
    x: Tensor, w: Tensor, windows: TransposedWindows
) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """Return X (N, C, H, W), the filter (C, M / group, kernel_h, kernel_w), and the sizes of Y."""
    x, w, group = windows.order.first(x), windows.order.first(w), windows.group
    require(x.dim() == 4 and w.dim() == 4, "X and the filter have 4 dimensions", x, w)
    require(x.shape[1] == w.shape[0], "X has one channel per row of the filter", x, w)
    require(x.shape[1] % group == 0, "the number of channels is divisible by group", x)
    _require_fit(x, w, windows)
    return x, w, (x.shape[0], w.shape[1] * group, *windows.sizes(x))


@operator("ConvTranspose", gradient=convolution_gradient)
def conv_transpose(
    x: Tensor, filter: Tensor, bias: Tensor | None = None, *, windows: TransposedWindows
) -> Tensor:
    """X: (N, C, H, W), filter: (C, M / group, kernel...), optionally bias: (M) -> (N, M, ...).

    A size of Y is (d - 1) * stride + kernel + adj - pads. In the order NHWC X is (N, H, W, C) and
    the filter (C, kernel..., M / group).
    """
    x, w, sizes = _transposed_operands(x, filter, windows)
    require(bias is None or bias.shape == sizes[1:2], "there is one bias per output", bias)
    if min(sizes[2:]) == 0:
        return windows.order.last(x.new_empty(sizes))
    stride, adj, group = windows.stride, windows.adj, windows.group
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
    return windows.order.last(y)


@operator("ConvTransposeGradient", outputs="1-3")
def conv_transpose_gradient(
    x: Tensor, filter: Tensor, dy: Tensor, *, windows: TransposedWindows, outputs: OutputCount = 3
) -> tuple[Tensor, ...]:
    """The gradients of ConvTranspose."""
    order = windows.order
    x, w, sizes = _transposed_operands(x, filter, windows)
    dy = order.first(dy)
    # (torch does not compare them, and reads outside of dY)
    require(dy.shape == sizes, "dY has the sizes of Y", dy, x, w)
    has_dx, has_bias = windows.wanted(outputs)
    # Elements in the padding, and those added by adj, are not computed by the filter.
    (top, left), (low, right) = windows.head, windows.tail
    sides = (left, right - windows.adj[1], top, low - windows.adj[0])
    padded, zeros, wanted = torch.constant_pad_nd(dy, sides), [0, 0], [has_dx, True, False]
    dx, dw, _ = torch.ops.aten.convolution_backward(
        padded, x, w, None, windows.stride, zeros, [1, 1], True, zeros, windows.group, wanted
    )
    db = dy.sum((0, 2, 3)) if has_bias else None
    return _given(order.last(dw), db, order.last(dx) if has_dx else None)


class LocalWindows(FilterWindows):
    """Windows with filters of their own; `group` is 1: with more Caffe2's operator crashes."""

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        require(self.group == 1, "group is 1", self.group)


def _local_operands(
    x: Tensor, w: Tensor, windows: LocalWindows
) -> tuple[Tensor, Window, Tensor, Tensor]:
    """Return X (N, C, ...), the windows, their elements (N, C, windows, kernel), and the filter.

    The filter is then (windows, M, C, kernel), where the elements of a kernel are one dimension.
    """
    x, rank = windows.order.first(x), x.dim() - 2
    require(1 <= rank <= 3, "X has one to three spatial dimensions", x)
    fits = w.dim() == 2 * rank + 2
    require(fits, "the filter has dimensions for windows, outputs, channels and kernel", w)
    window = windows.on(x.shape[2:])
    require(set(window.dilation) == {1}, "dilation is 1", window.dilation)
    require(list(w.shape[:rank]) == list(window.sizes), "there is one filter per window", w)
    w = w if windows.order.is_first else w.movedim(-1, rank + 1)
    kernel = list(w.shape[rank + 2 :])
    require(kernel == list(window.kernel), "the filter has the size of the kernel", w)
    require(x.shape[1] == w.shape[rank + 1], "X has as many channels as the filter", x, w)
    places, elements = math.prod(window.sizes), math.prod(window.kernel)
    cut = windows_of(window.padded(x), window).reshape(*x.shape[:2], places, elements)
    return x, window, cut, w.reshape(places, w.shape[rank], x.shape[1], elements)


@by_rank("LC", gradient=convolution_gradient)
def locally_connected(
    x: Tensor, filter: Tensor, bias: Tensor | None = None, *, windows: LocalWindows
) -> Tensor:
    """(X, filter, optionally bias: (windows..., M)) -> Y: (N, M, ...).

    X: (N, C, ...), filter: (windows..., M, C, kernel...); in the order NHWC X: (N, ..., C), filter:
    (windows..., M, kernel..., C). For the arguments see Windows.
    """
    x, window, cut, filters = _local_operands(x, filter, windows)
    outputs = filters.shape[1]
    y = torch.einsum("ncyk,ymck->nmy", cut, filters)
    if bias is not None:
        fits = list(bias.shape) == [*window.sizes, outputs]
        require(fits, "there is one bias per element of Y's images", bias)
        y = y + bias.view(-1, outputs).t()
    return windows.order.last(y.reshape(x.shape[0], outputs, *window.sizes))


@by_rank("LC", "Gradient", inputs="2-3", outputs="1-3")
def locally_connected_gradient(
    x: Tensor, filter: Tensor, dy: Tensor, *, windows: LocalWindows, outputs: OutputCount = 3
) -> tuple[Tensor, ...]:
    """The gradients of a locally connected layer."""
    order, dy = windows.order, windows.order.first(dy)
    x, window, cut, filters = _local_operands(x, filter, windows)
    has_dx, has_bias = windows.wanted(outputs)
    places, rank = filters.shape[0], len(window.sizes)
    rows = dy.reshape(x.shape[0], filters.shape[1], places)
    dw = torch.einsum("ncyk,nmy->ymck", cut, rows)
    dw = dw.reshape(*window.sizes, filters.shape[1], x.shape[1], *window.kernel)
    dx = None
    if has_dx:
        parts = torch.einsum("ymck,nmy->ncyk", filters, rows)
        parts = parts.reshape(*x.shape[:2], *window.sizes, *window.kernel)
        dx = order.last(added_up(parts, x.shape, window))
    db = dy.sum(0).movedim(0, -1) if has_bias else None
    return _given(dw if order.is_first else dw.movedim(rank + 1, -1), db, dx)
