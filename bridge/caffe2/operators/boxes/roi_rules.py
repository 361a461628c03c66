# SPDX-License-Identifier: Apache-2.0
"""RoIRules: the arguments that operators on regions of interest (RoIs) have in common."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.operators.base.checks import image_order, require, require_range


class RoIRules:
    """How regions R of images X (N, C, H, W) are brought to one size.

    Arguments: `spatial_scale` (1): pixels of X per pixel of a region; `pooled_h`, `pooled_w` (1);
    `order` (NCHW); `sampling_ratio` (-1): samples per bin and direction, as many as it has pixels
    if not positive; `aligned` (False): pixel centers are at half-integer coordinates.
    Raises EnforceNotMet: a size is not positive.
    """

    takes = (
        "str order, float spatial_scale, int pooled_h, int pooled_w, int sampling_ratio, "
        "bool aligned"
    )

    def __init__(self, arguments: Arguments) -> None:
        self.order = image_order(arguments.single("order", "NCHW"))
        self.scale: float = arguments.single("spatial_scale", 1.0)
        self.bins = bins = arguments.single("pooled_h", 1), arguments.single("pooled_w", 1)
        self.ratio = ratio = arguments.single("sampling_ratio", -1)
        self.aligned = bool(arguments.single("aligned", False))
        require(self.scale > 0, "spatial_scale is positive", self.scale)
        require(min(bins) > 0, "pooled_h and pooled_w are positive", bins)
        most = max(*bins, ratio)
        require(most < 2**31, "bins and sampling_ratio fit an int of 32 bits", bins, ratio)


def regions_of(r: Tensor, sides: int, images: int) -> tuple[Tensor, Tensor]:
    """Return the image index of each region, and the regions, which have `sides` numbers.

    Raises EnforceNotMet: they have not, or an index is not below `images`.
    """
    wide = r.dim() == 2 and r.shape[1] in (sides, sides + 1)
    require(wide, f"regions have {sides} numbers, or one more", r)
    r = r.detach()
    if r.shape[1] == sides:
        number = torch.zeros(r.shape[0], dtype=torch.long, device=r.device)
    else:
        number = r[:, 0].long()
    require_range("image indices of regions", number, images)
    return number, r[:, -sides:]


def require_pixels(x: Tensor, r: Tensor) -> None:
    """Raise EnforceNotMet where there are regions, but no pixels in the images (N, C, H, W)."""
    require(not r.shape[0] or 0 not in x.shape[2:], "images with regions have pixels", x, r)
