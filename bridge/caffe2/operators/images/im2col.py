# SPDX-License-Identifier: Apache-2.0
"""Im2Col and Col2Im: windows of images as columns, and back."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import functional

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


__all__ = ["Col2Im", "Im2Col"]


class Columns(FloatOperator):
    """The base class of Im2Col and Col2Im.

    Arguments: `kernel`, `stride` (1), `dilation` (1), each also as `_h` and `_w`; `pad` (0), on all
    sides; `order` (NCHW).
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.order = self.image_order()
        self.pad = self.GetSingleArgument("pad", 0)
        self.kernel = self._both("kernel", 0)
        self.stride = self._both("stride", 1)
        self.dilation = self._both("dilation", 1)
        positive = min(*self.kernel, *self.stride, *self.dilation) > 0 and self.pad >= 0
        self.enforce(positive, "kernel, stride and dilation are positive, pad is not negative")

    def _both(self, name: str, default: int) -> list[int]:
        default = self.GetSingleArgument(name, default)
        return [self.GetSingleArgument(f"{name}_{side}", default) for side in "hw"]

    def windows(self, sizes: tuple[int, int]) -> list[int]:
        """Return the number of windows, vertically and horizontally, in an image of these sizes."""
        found = []
        for size, kernel, stride, dilation in zip(
            sizes, self.kernel, self.stride, self.dilation, strict=True
        ):
            reach = dilation * (kernel - 1) + 1
            self.enforce(size >= reach, "the kernel fits into the image", size, reach)
            found.append((size + 2 * self.pad - reach) // stride + 1)
        return found


@register_operator("Im2Col")
class Im2Col(Columns):
    """X: (N, C, H, W) -> (N, C * kernel_h * kernel_w, windows_h, windows_w).

    In the order NHWC (N, H, W, C) -> (N, windows_h, windows_w, kernel_h * kernel_w * C). See
    Columns.
    Follows Im2ColOp, caffe2/operators/im2col_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        x = channels_first(x, self.order)
        n, c, height, width = x.shape
        up, across = self.windows((height, width))
        cut = functional.unfold(x, self.kernel, self.dilation, self.pad, self.stride)
        if self.order == "NHWC":
            cut = cut.view(n, c, -1, up, across).permute(0, 3, 4, 2, 1).flatten(3)
        else:
            cut = cut.view(n, -1, up, across)
        self.put(0, cut)


@register_operator("Col2Im")
class Col2Im(Columns):
    """(the result of Im2Col, an image) -> an image of these sizes; overlaps are added."""

    def RunOnDevice(self) -> None:
        x, like = self.x(0), self.Input(1)
        self.enforce(like.dim() == 4, "the image has 4 dimensions", like)
        n, *rest = like.shape
        height, width = rest[1:] if self.order == "NCHW" else rest[:2]
        c = rest[0] if self.order == "NCHW" else rest[2]
        up, across = self.windows((height, width))
        elements = self.kernel[0] * self.kernel[1]
        self.enforce(
            x.numel() == n * c * elements * up * across, "X has one column per window", x, like
        )
        if self.order == "NHWC":
            x = x.view(n, up, across, elements, c).permute(0, 4, 3, 1, 2)
        cut = x.reshape(n, c * elements, up * across)
        sizes = (height, width)
        y = functional.fold(cut, sizes, self.kernel, self.dilation, self.pad, self.stride)
        self.put(0, channels_last(y, self.order))
