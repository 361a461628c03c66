# SPDX-License-Identifier: Apache-2.0
"""SpaceToBatch and BatchToSpace."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import functional

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


__all__ = ["BatchToSpace", "SpaceToBatch"]


class Blocks(FloatOperator):
    """The base class of SpaceToBatch and BatchToSpace; arguments `block_size` (2), `pad` (0).

    `pad_t` overrides `pad` at the top; the other sides have no such argument.
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
    """X: (N, C, H, W), padded -> (block^2 * N, C, H / block, W / block).

    Follows SpaceToBatchOp, caffe2/operators/space_batch_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        padded = functional.pad(x, (self.pad, self.pad, self.top, self.pad))
        n, c, height, width = padded.shape
        block = self.block
        self.enforce(
            height % block == 0 and width % block == 0,
            "the sizes of the image are divisible by block_size",
            padded,
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
        self.enforce(batch % block**2 == 0, "the batch size is divisible by block_size^2", x)
        n, height, width = batch // block**2, height * block, width * block
        kept = min(height - self.top - self.pad, width - 2 * self.pad)
        self.enforce(
            kept >= 0, "the pads are at most as large as the image", self.pad, height, width
        )
        blocks = x.view(block, block, n, *x.shape[1:]).permute(2, 3, 4, 0, 5, 1)
        whole = blocks.reshape(n, c, height, width)
        sides = (-self.pad, -self.pad, -self.top, -self.pad)
        self.put(0, functional.pad(whole, sides))
