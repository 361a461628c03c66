# SPDX-License-Identifier: Apache-2.0
"""Windows of images as columns, and back; blocks of pixels as images of a batch, and back."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.channels import ChannelsFirst, Order
from bridge.caffe2.operators.base.checks import require


class Columns:
    """The windows of Im2Col and Col2Im.

    Arguments: `kernel`, `stride` (1), `dilation` (1), each also as `_h` and `_w`; `pad` (0), on all
    sides.
    """

    takes = (
        "int kernel, int kernel_h, int kernel_w, int stride, int stride_h, int stride_w, "
        "int dilation, int dilation_h, int dilation_w, int pad"
    )

    def __init__(self, arguments: Arguments) -> None:
        def both(name: str, default: int) -> list[int]:
            default = arguments.single(name, default)
            return [arguments.single(f"{name}_{side}", default) for side in "hw"]

        self.pad = arguments.single("pad", 0)
        self.kernel, self.stride = both("kernel", 0), both("stride", 1)
        self.dilation = both("dilation", 1)
        positive = min(*self.kernel, *self.stride, *self.dilation) > 0 and self.pad >= 0
        require(positive, "kernel, stride and dilation are positive, pad is not negative")

    def counts(self, sizes: tuple[int, int]) -> list[int]:
        """Return the number of windows, vertically and horizontally, in an image of these sizes."""
        found = []
        for size, kernel, stride, dilation in zip(
            sizes, self.kernel, self.stride, self.dilation, strict=True
        ):
            reach = dilation * (kernel - 1) + 1
            require(size >= reach, "the kernel fits into the image", size, reach)
            found.append((size + 2 * self.pad - reach) // stride + 1)
        return found

    @property
    def settings(self) -> tuple[list[int], ...]:
        """Kernel, dilation, pads and strides, as torch takes them."""
        return self.kernel, self.dilation, [self.pad, self.pad], self.stride


@operator("Im2Col", gradient="Col2Im g0 i0 > 0")
def im2col(x: Tensor, *, columns: Columns, order: Order) -> Tensor:
    """X: (N, C, H, W) -> (N, C * kernel_h * kernel_w, windows_h, windows_w).

    In the order NHWC (N, H, W, C) -> (N, windows_h, windows_w, kernel_h * kernel_w * C). See
    Columns.
    Follows Im2ColOp, caffe2/operators/im2col_op.h, PyTorch 1.8.1.
    """
    require(x.dim() == 4, "X has 4 dimensions", x)
    x = order.first(x)
    n, c, height, width = x.shape
    up, across = columns.counts((height, width))
    cut = torch.ops.aten.im2col(x, *columns.settings)
    if not order.is_first:
        return cut.view(n, c, -1, up, across).permute(0, 3, 4, 2, 1).flatten(3)
    return cut.view(n, -1, up, across)


@operator("Col2Im", types={"like": None}, rearranges=(), gradient="Im2Col g0 > 0")
def col2im(x: Tensor, like: Tensor, *, columns: Columns, order: Order) -> Tensor:
    """(the result of Im2Col, an image) -> an image of these sizes; overlaps are added."""
    require(like.dim() == 4, "the image has 4 dimensions", like)
    n, c, height, width = order.first(like).shape
    up, across = columns.counts((height, width))
    elements = columns.kernel[0] * columns.kernel[1]
    require(x.numel() == n * c * elements * up * across, "X has one column per window", x, like)
    if not order.is_first:
        x = x.view(n, up, across, elements, c).permute(0, 4, 3, 1, 2)
    cut = x.reshape(n, c * elements, up * across)
    return order.last(torch.ops.aten.col2im(cut, [height, width], *columns.settings))


class Blocks:
    """Arguments `block_size` (2), `pad` (0); `pad_t` overrides `pad` at the top.

    The other sides have no such argument. `order` must be NCHW.
    """

    takes = "str order, int pad, int pad_t, int block_size"

    def __init__(self, arguments: Arguments) -> None:
        ChannelsFirst(arguments)
        self.pad = arguments.single("pad", 0)
        self.top = arguments.single("pad_t", self.pad)
        self.size = arguments.single("block_size", 2)
        require(self.size > 0, "block_size is positive", self.size)


@operator("SpaceToBatch", gradient="BatchToSpace g0 > 0")
def space_to_batch(x: Tensor, *, blocks: Blocks) -> Tensor:
    """X: (N, C, H, W), padded -> (block^2 * N, C, H / block, W / block).

    Follows SpaceToBatchOp, caffe2/operators/space_batch_op.h, PyTorch 1.8.1.
    """
    require(x.dim() == 4, "X has 4 dimensions", x)
    pad, size = blocks.pad, blocks.size
    padded = torch.constant_pad_nd(x, (pad, pad, blocks.top, pad))
    n, c, height, width = padded.shape
    fits = height % size == 0 and width % size == 0
    require(fits, "the sizes of the image are divisible by block_size", padded)
    cut = padded.view(n, c, height // size, size, width // size, size)
    return cut.permute(3, 5, 0, 1, 2, 4).flatten(0, 2)


@operator("BatchToSpace", gradient="SpaceToBatch g0 > 0")
def batch_to_space(x: Tensor, *, blocks: Blocks) -> Tensor:
    """X: (block^2 * N, C, H, W) -> (N, C, H * block, W * block), less the pads."""
    require(x.dim() == 4, "X has 4 dimensions", x)
    pad, size, (batch, c, height, width) = blocks.pad, blocks.size, x.shape
    require(batch % size**2 == 0, "the batch size is divisible by block_size^2", x)
    n, height, width = batch // size**2, height * size, width * size
    kept = min(height - blocks.top - pad, width - 2 * pad)
    require(kept >= 0, "the pads are at most as large as the image", pad, height, width)
    parts = x.view(size, size, n, *x.shape[1:]).permute(2, 3, 4, 0, 5, 1)
    whole = parts.reshape(n, c, height, width)
    return torch.constant_pad_nd(whole, (-pad, -pad, -blocks.top, -pad))
