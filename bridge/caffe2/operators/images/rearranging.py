# SPDX-License-Identifier: Apache-2.0
"""Images padded, cut into windows, blocks and batches, and summed up."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import functional, torch
from bridge.caffe2.operators.base.windows import NOTSET, WindowOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

__all__ = ["BatchToSpace", "Col2Im", "Im2Col", "IntegralImage", "PadImage", "SpaceToBatch"]

_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}


class Padding(WindowOperator):
    """What PadImage and its gradient have in common.

    Arguments: `pad`, the sides, or `pads`, as WindowOperator; `mode` (constant, reflect or edge),
    `value` (0) of constant; `order`.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        mode = self.GetSingleArgument("mode", "constant")
        self.enforce(mode in _MODES, f"mode is one of {', '.join(_MODES)}", mode)
        self.enforce(self.legacy == NOTSET, "pads are said explicitly")
        self.enforce({*self.dilation, *self.stride} <= {1}, "pads come without stride, dilation")
        self.enforce(len(self.pads) == 4, "there are four pads", self.pads)
        top, left, bottom, right = self.pads
        self.sides = (left, right, top, bottom)
        self.mode = _MODES[mode]
        self.value = self.GetSingleArgument("value", 0.0)

    def padded(self, x: Tensor) -> Tensor:
        """Pad an image (N, C, H, W)."""
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        height, width = x.shape[2:]
        if self.mode == "reflect":
            self.enforce(
                max(self.sides[:2]) < width and max(self.sides[2:]) < height,
                "pads that reflect are smaller than the image",
                self.pads,
                x,
            )
        value = self.value if self.mode == "constant" else None
        found: Tensor = functional.pad(x, self.sides, mode=self.mode, value=value)
        return found


@register_operator("PadImage")
class PadImage(Padding):
    """X: (N, C, H, W) -> Y with pads around it; as Padding.

    Follows PadImageOp, caffe2/operators/pad_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        y = self.padded(channels_first(self.x(0), self.order))
        self.put(0, channels_last(y, self.order))


@register_operator("PadImageGradient")
class PadImageGradient(Padding):
    """dY -> dX: what fell on the pads goes to the elements that they were copies of."""

    def RunOnDevice(self) -> None:
        dy = channels_first(self.x(0), self.order)
        left, right, top, bottom = self.sides
        n, c, height, width = dy.shape
        self.value = -1.0  # no place
        sizes = (height - top - bottom, width - left - right)
        self.enforce(min(sizes) > 0, "dY is larger than the pads", dy, self.pads)
        places = torch.arange(sizes[0] * sizes[1], dtype=torch.float64).view(1, 1, *sizes)
        index = self.padded(places).long().view(-1)
        kept = index >= 0
        dx = dy.new_zeros(n, c, sizes[0] * sizes[1])
        dx.index_add_(2, index[kept], dy.flatten(2)[:, :, kept])
        self.put(0, channels_last(dx.view(n, c, *sizes), self.order))


class Columns(FloatOperator):
    """What Im2Col and Col2Im have in common.

    Arguments: `kernel`, `stride` (1), `dilation` (1), each also by `_h` and `_w`; `pad` (0), on
    all sides; `order` (NCHW).
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
        """Return how many windows there are, up and across, in an image of these sizes."""
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
    """X: (N, C, H, W) -> (N, C * kernel_h * kernel_w, windows up, windows across).

    In the order NHWC (N, H, W, C) -> (N, up, across, kernel_h * kernel_w * C). As Columns.
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
    """(what Im2Col gives, an image) -> an image of those sizes, what overlaps being added."""

    def RunOnDevice(self) -> None:
        x, like = self.x(0), self.Input(1)
        self.enforce(like.dim() == 4, "the image has 4 dimensions", like)
        n, *rest = like.shape
        height, width = rest[1:] if self.order == "NCHW" else rest[:2]
        c = rest[0] if self.order == "NCHW" else rest[2]
        up, across = self.windows((height, width))
        elements = self.kernel[0] * self.kernel[1]
        self.enforce(x.numel() == n * c * elements * up * across, "X is of the windows", x, like)
        if self.order == "NHWC":
            x = x.view(n, up, across, elements, c).permute(0, 4, 3, 1, 2)
        cut = x.reshape(n, c * elements, up * across)
        sizes = (height, width)
        y = functional.fold(cut, sizes, self.kernel, self.dilation, self.pad, self.stride)
        self.put(0, channels_last(y, self.order))


class Blocks(FloatOperator):
    """What SpaceToBatch and BatchToSpace have in common; arguments `block_size` (2), `pad` (0).

    `pad_t` is what the top has instead of `pad`; the other sides have no such argument.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.enforce(self.image_order() == "NCHW", "order is NCHW")
        self.pad = self.GetSingleArgument("pad", 0)
        self.top = self.GetSingleArgument("pad_t", self.pad)
        self.block = self.GetSingleArgument("block_size", 2)
        self.enforce(self.block > 0, "block_size is positive", self.block)


@register_operator("SpaceToBatch")
class SpaceToBatch(Blocks):
    """X: (N, C, H, W), padded -> (block^2 * N, C, H / block, W / block), the blocks' elements.

    Follows SpaceToBatchOp, caffe2/operators/space_batch_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        padded = functional.pad(x, (self.pad, self.pad, self.top, self.pad))
        n, c, height, width = padded.shape
        block = self.block
        self.enforce(
            height % block == 0 and width % block == 0, "the image is of whole blocks", padded
        )
        cut = padded.view(n, c, height // block, block, width // block, block)
        self.put(0, cut.permute(3, 5, 0, 1, 2, 4).flatten(0, 2))


@register_operator("BatchToSpace")
class BatchToSpace(Blocks):
    """X: (block^2 * N, C, H, W) -> (N, C, H * block, W * block), less the pads."""

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        block, (batch, c, height, width) = self.block, x.shape
        self.enforce(batch % block**2 == 0, "the batch is divisible by block_size^2", x)
        n, height, width = batch // block**2, height * block, width * block
        kept = min(height - self.top - self.pad, width - 2 * self.pad)
        self.enforce(kept >= 0, "the pads are not larger than the image", self.pad, height, width)
        blocks = x.view(block, block, n, *x.shape[1:]).permute(2, 3, 4, 0, 5, 1)
        whole = blocks.reshape(n, c, height, width)
        sides = (-self.pad, -self.pad, -self.top, -self.pad)
        self.put(0, functional.pad(whole, sides))


@register_operator("IntegralImage")
class IntegralImage(FloatOperator):
    """X: (N, C, H, W) -> (N, C, H + 1, W + 1), the sums of all above and left of each place.

    Follows IntegralImageOp, caffe2/operators/integral_image_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        self.put(0, functional.pad(x.cumsum(2).cumsum(3), (1, 0, 1, 0)))


@register_operator("IntegralImageGradient")
class IntegralImageGradient(FloatOperator):
    """(X, dY) -> dX."""

    def RunOnDevice(self) -> None:
        x, dy = self.x(0), self.x(1)
        self.enforce(x.dim() == 4 and dy.dim() == 4, "X and dY have 4 dimensions", x, dy)
        self.put(0, dy.cumsum(2).cumsum(3)[:, :, : x.shape[2], : x.shape[3]])
