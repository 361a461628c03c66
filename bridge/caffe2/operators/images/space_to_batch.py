# SPDX-License-Identifier: Apache-2.0
"""SpaceToBatch and BatchToSpace."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import image_order, require


class Blocks:
    """Arguments `block_size` (2), `pad` (0); `pad_t` overrides `pad` at the top.

    The other sides have no such argument. `order` must be NCHW.
    """

    takes = "str order, int pad, int pad_t, int block_size"

    def __init__(self, arguments: Arguments) -> None:
        require(image_order(arguments.single("order", "NCHW")) == "NCHW", "order is NCHW")
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
