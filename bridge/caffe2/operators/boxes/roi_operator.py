# SPDX-License-Identifier: Apache-2.0
"""RoIOperator: the base class of operators on regions of interest (RoIs)."""

from __future__ import annotations

from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

__all__: list[str] = []


class RoIOperator(FloatOperator):
    """An operator on images X (N, C, H, W) and regions R.

    Arguments: `spatial_scale` (1): pixels of X per pixel of a region; `pooled_h`, `pooled_w` (1);
    `order` (NCHW).
    """

    sides = 4  # numbers per region

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.order = self.image_order()
        self.scale = self.GetSingleArgument("spatial_scale", 1.0)
        self.bins = self.GetSingleArgument("pooled_h", 1), self.GetSingleArgument("pooled_w", 1)
        self.enforce(self.scale > 0, "spatial_scale is positive", self.scale)
        self.enforce(min(self.bins) > 0, "pooled_h and pooled_w are positive", self.bins)

    def regions(self, i: int, images: int) -> tuple[Tensor, Tensor]:
        """Return the image index of each region, and the regions, from input `i`."""
        r = self.x(i)
        wide = r.dim() == 2 and r.shape[1] in (self.sides, self.sides + 1)
        self.enforce(wide, f"regions have {self.sides} numbers, or one more", r)
        number = torch.zeros(len(r), dtype=torch.long)
        if r.shape[1] > self.sides:
            number = r[:, 0].long()
        self.enforce_range("image indices of regions", number, images)
        return number, r[:, -self.sides :]
