# SPDX-License-Identifier: Apache-2.0
"""RoIAlign, upright and rotated: regions of images sampled to one size.

An output element of RoIAlign is a weighted sum of image elements. All of them together are one
product with a sparse matrix, which torch computes by `embedding_bag`: the rows are the pixels of
the images, each with all its channels.
"""

from __future__ import annotations

import math

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import channels_first
from bridge.caffe2.operators.base.lazy_torch import functional, torch
from bridge.caffe2.operators.boxes.roi_operator import RoIOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["RoIAlign", "RoIAlignRotated"]


class RoIAlignOperator(RoIOperator):
    """An operator that samples bins of regions bilinearly.

    Arguments: `sampling_ratio` (-1): samples per bin and direction, as many as it has pixels if not
    positive; `aligned` (False): pixel centers are at half-integer coordinates.
    """

    def samples(self, number: Tensor, regions: Tensor, height: int, width: int) -> Bags:
        """Return which pixels each bin is a sum of, and with which weights."""
        self.aligned = bool(self.GetSingleArgument("aligned", False))
        ratio = self.GetSingleArgument("sampling_ratio", -1)
        corner, size, turn = self.geometry(regions)
        if ratio > 0:
            grid = torch.full((len(regions), 2), ratio)
        else:
            grid = torch.ceil(size / torch.tensor(self.bins, dtype=torch.float32)).long()
        bags = Bags(len(regions) * self.bins[0] * self.bins[1])
        # Regions with the same grid are computed together: there are few different grids.
        for up, across in torch.unique(grid, dim=0).tolist():
            if up <= 0 or across <= 0:
                continue
            rows = ((grid[:, 0] == up) & (grid[:, 1] == across)).nonzero().view(-1)
            y = self.offsets(size[rows, 0], self.bins[0], up)
            x = self.offsets(size[rows, 1], self.bins[1], across)
            y, x = corner[rows, :1] + y, corner[rows, 1:] + x
            y, x = torch.broadcast_tensors(y[:, :, None], x[:, None, :])
            if turn is not None:
                y, x = turned(y, x, turn[rows])
            shape = (len(rows), self.bins[0], up, self.bins[1], across)
            y, x = (one.reshape(shape).transpose(2, 3).flatten(3) for one in (y, x))
            index, weight = corners(y, x, height, width)
            index = index + (number[rows] * height * width).view(-1, 1, 1, 1)
            bags.add(rows, index, weight / (up * across))
        return bags

    def offsets(self, size: Tensor, bins: int, count: int) -> Tensor:
        """Return the offsets of samples along a side of the regions: (regions, bins * count)."""
        step = size.view(-1, 1, 1) / bins
        first = torch.arange(bins, dtype=torch.float32).view(1, -1, 1)
        inner = torch.arange(count, dtype=torch.float32).view(1, 1, -1) + 0.5
        found: Tensor = (first * step + inner * step / count).flatten(1)
        return found

    def geometry(self, regions: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the first corner, the size and the rotation of each region, as (y, x)."""
        offset = 0.5 if self.aligned else 0.0
        low = regions[:, [1, 0]] * self.scale - offset
        size = regions[:, [3, 2]] * self.scale - offset - low
        if self.aligned:
            self.enforce(bool((size >= 0).all()), "the sides of regions are not negative")
        else:
            size = size.clamp(min=1)
        return low, size, None


class Bags:
    """The pixels that each of `count` bins is a sum of, and their weights."""

    def __init__(self, count: int) -> None:
        self.lengths = torch.zeros(count, dtype=torch.long)
        self.parts: list[tuple[Tensor, Tensor, Tensor]] = []

    def add(self, rows: Tensor, index: Tensor, weight: Tensor) -> None:
        """Add pixels and weights of the bins of regions `rows`: both (rows, up, across, n)."""
        bins = index.shape[1] * index.shape[2]
        places = (rows.view(-1, 1) * bins + torch.arange(bins)).view(-1)
        self.parts.append((places, index.flatten(0, 2), weight.flatten(0, 2)))

    def summed(self, rows: Tensor) -> Tensor:
        """Return the sums of `rows` (pixels, C) by bin: (bins, C)."""
        made = rows.new_zeros(len(self.lengths), rows.shape[1])
        if not made.numel():  # torch's embedding_bag fails for it on several threads
            return made
        for places, index, weight in self.parts:
            made[places] = functional.embedding_bag(
                index, rows, mode="sum", per_sample_weights=weight
            )
        return made

    def spread(self, bins: Tensor, places: int) -> Tensor:
        """Return the gradients (bins, C) added to the pixels of the sums: (places, C)."""
        made = bins.new_zeros(places, bins.shape[1])
        for where, index, weight in self.parts:
            parts = bins[where].unsqueeze(1) * weight.unsqueeze(2)
            made.index_add_(0, index.reshape(-1), parts.flatten(0, 1))
        return made


def corners(y: Tensor, x: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return the four pixels around each sample, and their weights: both (..., 4 n).

    A sample outside the image by more than a pixel has weight 0.
    """
    inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    y, x = y.clamp(min=0), x.clamp(min=0)
    top, left = y.long(), x.long()
    y = torch.where(top >= height - 1, float(height - 1), y)
    x = torch.where(left >= width - 1, float(width - 1), x)
    top, left = top.clamp(max=height - 1), left.clamp(max=width - 1)
    low, right = (top + 1).clamp(max=height - 1), (left + 1).clamp(max=width - 1)
    dy, dx = y - top, x - left
    hy, hx = 1 - dy, 1 - dx
    index = torch.cat(
        [top * width + left, top * width + right, low * width + left, low * width + right], -1
    )
    weight = torch.cat([one * inside for one in (hy * hx, hy * dx, dy * hx, dy * dx)], -1)
    return index, weight


def turned(y: Tensor, x: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate points around centers; `turn` (regions, 4): cosine, sine, and the center's y and x."""
    cos, sin, cy, cx = (turn[:, i].view(-1, 1, 1) for i in range(4))
    return y * cos - x * sin + cy, x * cos + y * sin + cx


def as_rows(x: Tensor) -> Tensor:
    """Return images (N, C, H, W) as rows of channels (N * H * W, C)."""
    rows = x.shape[0] * x.shape[2:].numel()
    return x.movedim(1, -1).reshape(rows, x.shape[1])


@register_operator("RoIAlign")
class RoIAlign(RoIAlignOperator):
    """Sample regions: (X: (N, C, H, W), R: (n, 4) or (n, 5)) -> (n, C, pooled_h, pooled_w).

    A region is x1, y1, x2, y2, preceded by the image index if there are several images. Each bin is
    the mean of bilinear samples in it. For the arguments see RoIOperator and RoIAlignOperator.
    Follows RoIAlignOp, caffe2/operators/roi_align_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = channels_first(self.x(0), self.order)
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        number, regions = self.regions(1, x.shape[0])
        bags = self.samples(number, regions, *x.shape[2:])
        made = bags.summed(as_rows(x)).view(len(regions), *self.bins, x.shape[1])
        self.put(0, made.movedim(-1, 1) if self.order == "NCHW" else made)


@register_operator("RoIAlignGradient")
class RoIAlignGradient(RoIAlignOperator):
    """(X, R, dY) -> dX: each bin's gradient, added to the pixels it is the mean of."""

    def RunOnDevice(self) -> None:
        x, dy = self.x(0), self.x(2)
        self.enforce(self.order == "NCHW", "order is NCHW", self.order)
        self.enforce(x.dim() == 4 and dy.dim() == 4, "X and dY have 4 dimensions", x, dy)
        n, channels, height, width = x.shape
        number, regions = self.regions(1, n)
        bags = self.samples(number, regions, height, width)
        made = bags.spread(as_rows(dy), n * height * width)
        self.put(0, made.view(n, height, width, channels).movedim(-1, 1))


@register_operator("RoIAlignRotated")
class RoIAlignRotated(RoIAlign):
    """RoIAlign of regions (center x, center y, width, height, angle in degrees).

    Follows RoIAlignRotatedOp, caffe2/operators/roi_align_rotated_op.cc, PyTorch 1.8.1.
    """

    sides = 5

    def geometry(self, regions: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        offset = 0.5 if self.aligned else 0.0
        center = regions[:, [1, 0]] * self.scale - offset
        size = regions[:, [3, 2]] * self.scale
        if self.aligned:
            self.enforce(bool((size >= 0).all()), "the sides of regions are not negative")
        else:
            size = size.clamp(min=1)
        angle = regions[:, 4:] * (math.pi / 180)
        return -size / 2, size, torch.cat([angle.cos(), angle.sin(), center], 1)
