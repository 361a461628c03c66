# SPDX-License-Identifier: Apache-2.0
"""RoIPool and Detectron's RoIPoolF: the maxima of regions of images; PSRoIPool: their means.

Caffe2 computes RoIPoolF, PSRoIPool, position-sensitive means of R-FCN, and the gradients on CUDA
alone; here they are computed on the CPU, too. Follows roi_pool_op.cc in caffe2/operators, and
roi_pool_f_op.cu and ps_roi_pool_op.cu in modules/detectron, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.operators.base.checks import INT32, require, require_range
from bridge.caffe2.operators.base.cpu_kernels import takes_kernels
from bridge.caffe2.operators.boxes import roi_align_kernels
from bridge.caffe2.operators.boxes.roi_align import RoIRules, are_of, regions_of


@operator("RoIPool", outputs="1-2", gradient="$Gradient i0 i1 o1 g0 > 0", effects=("values",))
@operator("RoIPoolF", gradient="$Gradient i0 i1 o1 g0 > 0", effects=("values",))
def roi_pool(
    x: Tensor, rois: Tensor, *, rules: RoIRules, is_test: int = 0, outputs: OutputCount = 2
) -> tuple[Tensor, Tensor]:
    """Maxima of the bins of regions: (X: (N, C, H, W), R: (n, 5)) -> (n, C, pooled_h, pooled_w).

    With `is_test` 0, and of RoIPoolF, a second output has the indices of the maxima in the plane of
    an image. For the arguments see RoIRules.
    """
    require(outputs == (1 if is_test else 2), "there are two outputs, with is_test one", outputs)
    require(rules.order.is_first, "order is NCHW, not NHWC")
    fits = x.dim() == 4 and rois.dim() == 2 and rois.shape[1] == 5
    require(fits, "X has 4 dimensions and R has sizes (n, 5)", x, rois)
    n, channels, height, width = x.shape
    sizes = rois.shape[0], channels, *rules.bins
    if takes_kernels(x) and are_of(rois, n):
        made, where = x.new_empty(sizes), x.new_empty(sizes, dtype=torch.int32)
        given = n, rois.shape[0], channels, height, width, *rules.bins, rules.scale
        return roi_align_kernels.roi_pool(x, rois, made, where, *given), where
    number, regions = regions_of(rois, 4, n)
    made = x.new_zeros(sizes)
    where = torch.full(made.shape, -1, dtype=torch.int32, device=x.device)
    scaled = regions * rules.scale
    places = (scaled + 0.5).where(scaled >= 0, -(-scaled + 0.5)).trunc().int().tolist()
    for i, (image, (left, top, right, low)) in enumerate(zip(number.tolist(), places, strict=True)):
        rows = spans(top, low, rules.bins[0], height)
        columns = spans(left, right, rules.bins[1], width)
        for up, (y0, y1) in enumerate(rows):
            for across, (x0, x1) in enumerate(columns):
                if y1 <= y0 or x1 <= x0:
                    continue
                part = x[image, :, y0:y1, x0:x1].flatten(1)
                made[i, :, up, across], at = part.max(1)
                place = (at // (x1 - x0) + y0) * width + at % (x1 - x0) + x0
                where[i, :, up, across] = place.int()
    return made, where


@operator("RoIPoolFGradient", types={"places": INT32}, effects=("values",))
@operator("RoIPoolGradient", types={"places": INT32}, effects=("values",))
def roi_pool_gradient(
    x: Tensor, rois: Tensor, places: Tensor, dy: Tensor, *, rules: RoIRules
) -> Tensor:
    """(X, R, the indices of the maxima, dY) -> dX: each gradient, added to its maximum's place."""
    require(x.dim() == 4 and dy.shape == places.shape, "dY has the sizes of the indices", dy)
    n, channels, pixels = *x.shape[:2], x.shape[2:].numel()
    number, _ = regions_of(rois, 4, n)
    fits = dy.shape[:2] == (rois.shape[0], channels)
    require(fits, "dY has a row per region, of the channels of X", dy, rois, x)
    require_range("the indices of maxima", places, pixels, -1)
    planes = number.long().view(-1, 1) * channels + torch.arange(channels, device=x.device)
    where, slopes = places.flatten(2), dy.flatten(2)
    at = planes.unsqueeze(2) * pixels + where.clamp_min(0)
    made = x.new_zeros(x.numel())
    made.index_add_(0, at.reshape(-1), torch.where(where >= 0, slopes, 0.0).reshape(-1))
    return made.view(x.shape)


def spans(first: int, last: int, bins: int, size: int) -> list[tuple[int, int]]:
    """Return the [start, end) of `bins` parts of pixels `first` to `last`, which may overlap."""
    length = torch.tensor(float(max(last - first + 1, 1)), dtype=torch.float32, device="cpu") / bins
    starts = torch.arange(bins, dtype=torch.float32, device="cpu") * length
    ends = torch.arange(1, bins + 1, dtype=torch.float32, device="cpu") * length
    low = (starts.floor().int() + first).clamp(0, size).tolist()
    high = (ends.ceil().int() + first).clamp(0, size).tolist()
    return list(zip(low, high, strict=True))


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
