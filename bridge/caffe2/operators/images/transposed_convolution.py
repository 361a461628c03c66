# SPDX-License-Identifier: Apache-2.0
"""Transposed convolution of images, in either order, and its gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.checks import image_order, require
from bridge.caffe2.operators.base.windows import (
    NOTSET,
    Windows,
    convolution_gradient,
    pair,
    wanted_gradients,
)


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


def _operands(
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
    x, w = _operands(x, filter, windows, group, order)
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
    x, w = _operands(x, filter, windows, group, order)
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
