# SPDX-License-Identifier: Apache-2.0
"""PSRoIPool: position-sensitive means of regions, of R-FCN.

Caffe2 computes it on CUDA alone; here it is computed on the CPU, too.
Follows modules/detectron/ps_roi_pool_op.cu, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, require
from bridge.caffe2.operators.boxes.roi_rules import regions_of

Bin = tuple[tuple[int, int, int], int, slice, slice]


class PositionSensitive:
    """The regions of PSRoIPool.

    Arguments: `spatial_scale` (1): pixels of X per pixel of a region; `group_size` (1): bins of a
    region in each direction; `output_dim` (1): channels of Y.
    """

    takes = "float spatial_scale, int group_size, int output_dim"

    def __init__(self, arguments: Arguments) -> None:
        self.scale: float = arguments.single("spatial_scale", 1.0)
        self.group: int = arguments.single("group_size", 1)
        self.channels: int = arguments.single("output_dim", 1)
        require(self.scale > 0, "spatial_scale is positive", self.scale)
        require(min(self.group, self.channels) > 0, "group_size and output_dim are positive")

    def by_bin(self, x: Tensor) -> Tensor:
        """Return X (N, C, H, W) as (N, output_dim, group_size, group_size, H, W)."""
        require(x.dim() == 4, "X has 4 dimensions", x)
        count = self.channels * self.group**2
        require(x.shape[1] == count, "X has output_dim * group_size**2 channels", x, count)
        return x.view(x.shape[0], self.channels, self.group, self.group, *x.shape[2:])

    def sizes(self, rois: Tensor) -> tuple[int, int, int, int]:
        """Return the sizes of Y."""
        return rois.shape[0], self.channels, self.group, self.group

    def bins(self, x: Tensor, rois: Tensor) -> Iterator[Bin]:
        """Yield region, row and column of each bin that is not empty, its image and its pixels."""
        require(rois.dim() == 2 and rois.shape[1] == 5, "R has sizes (n, 5)", rois)
        number, regions = regions_of(rois, 4, x.shape[0])
        whole = (regions.abs() + 0.5).floor() * regions.sign()
        scale = torch.full((), self.scale, dtype=torch.float32, device=x.device)
        start = (whole[:, :2] * scale).unsqueeze(2)
        end = ((whole[:, 2:].double() + 1) * scale.double()).float().unsqueeze(2)
        side = (end - start).clamp(min=0.1) / self.group
        steps = torch.arange(self.group + 1, dtype=torch.float32, device=x.device)
        limits = torch.tensor([x.shape[3], x.shape[2]], device=x.device).view(1, 2, 1)
        low = (steps[:-1] * side + start).floor().long().clamp(min=0).minimum(limits)
        high = (steps[1:] * side + start).ceil().long().clamp(min=0).minimum(limits)
        spans = torch.stack([low, high], 3).tolist()
        for r, (image, (columns, rows)) in enumerate(zip(number.tolist(), spans, strict=True)):
            for up, (top, low_end) in enumerate(rows):
                for across, (left, right) in enumerate(columns):
                    if top < low_end and left < right:
                        yield (r, up, across), image, slice(top, low_end), slice(left, right)


@operator("PSRoIPool", gradient="$Gradient i0 i1 o1 g0 > 0", effects=("values",))
def ps_roi_pool(x: Tensor, rois: Tensor, *, rules: PositionSensitive) -> tuple[Tensor, Tensor]:
    """(X: (N, output_dim * group_size**2, H, W), R: (n, 5)) -> Y, channels of X.

    Bin (i, j) of a region is the mean of the pixels in it of a channel of its own: both results
    have sizes (n, output_dim, group_size, group_size), 0 in empty bins of Y. A region is the image
    index, x1, y1, x2, y2.
    """
    parts = rules.by_bin(x)
    sizes = rules.sizes(rois)
    means = x.new_zeros(sizes)
    for (r, up, across), image, rows, columns in rules.bins(x, rois):
        means[r, :, up, across] = parts[image, :, up, across, rows, columns].mean((1, 2))
    channels = torch.arange(x.shape[1], dtype=torch.int32, device=x.device).view(sizes[1:])
    return means, channels.expand(sizes).contiguous()


@operator("PSRoIPoolGradient", types={"channels": INT32}, effects=("values",))
def ps_roi_pool_gradient(
    x: Tensor, rois: Tensor, channels: Tensor, dy: Tensor, *, rules: PositionSensitive
) -> Tensor:
    """(X, R, channels, dY) -> dX: each bin's gradient, divided among its pixels."""
    made = torch.zeros_like(x)
    parts = rules.by_bin(made)
    require(dy.shape == rules.sizes(rois), "dY has the sizes of Y", dy)
    require(channels.shape == dy.shape, "the channels have the sizes of Y", channels)
    for (r, up, across), image, rows, columns in rules.bins(x, rois):
        part = parts[image, :, up, across, rows, columns]
        part += (dy[r, :, up, across] / part[0].numel()).view(-1, 1, 1)
    return made
