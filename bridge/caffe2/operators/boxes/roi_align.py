# SPDX-License-Identifier: Apache-2.0
"""RoIAlign, upright and rotated: regions of images (RoIs) sampled to one size.

An output element of RoIAlign is a weighted sum of image elements. All of them together are one
product with a sparse matrix, which torch computes by `embedding_bag`: the rows are the pixels of
the images, each with all its channels. The CPU has kernels for both, and torch traces the form of
upright regions that `aligned_by_products` has. Follows roi_align_op.cc and roi_align_rotated_op.cc
in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.channels import Order
from bridge.caffe2.operators.base.checks import has_values, require, require_all, require_range
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.boxes import roi_align_kernels


class RoIRules:
    """How regions R of images X (N, C, H, W) are brought to one size.

    Arguments: `spatial_scale` (1): pixels of X per pixel of a region; `pooled_h`, `pooled_w` (1);
    `order` (NCHW); `sampling_ratio` (-1): samples per bin and direction, as many as it has pixels
    if not positive; `aligned` (False): pixel centers are at half-integer coordinates. `sides`: the
    numbers of a region, 5 of rotated ones. Raises EnforceNotMet: a size is not positive.
    """

    takes = (
        "str order, float spatial_scale, int pooled_h, int pooled_w, int sampling_ratio, "
        "bool aligned"
    )

    def __init__(self, arguments: Arguments) -> None:
        self.order = Order(arguments)
        self.scale: float = arguments.single("spatial_scale", 1.0)
        self.bins = bins = arguments.single("pooled_h", 1), arguments.single("pooled_w", 1)
        self.ratio = ratio = arguments.single("sampling_ratio", -1)
        self.sides = 5 if "Rotated" in arguments.type else 4
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


# Samples nearer than a pixel to one: they lie more than half a pixel apart if there are several in
# a bin. With one more for each end, since their numbers are rounded.
_NEAR = 6


def aligned_by_products(
    x: Tensor, number: Tensor, corner: Tensor, size: Tensor, bins: tuple[int, int], ratio: int
) -> Tensor:
    """Return the bins of regions: (n, C, bins[0], bins[1]).

    x: images (N, C, H, W); number (n): the images of the regions; corner, size (n, 2): their first
    corners and sizes as (y, x). ratio: samples per bin and direction; one per pixel if not
    positive.
    """
    rows = _weights(corner[:, 0], size[:, 0], bins[0], ratio, x.shape[2])
    columns = _weights(corner[:, 1], size[:, 1], bins[1], ratio, x.shape[3])
    images = x if x.shape[0] == 1 else x[number]
    return rows.unsqueeze(1) @ images @ columns.transpose(1, 2).unsqueeze(1)


def _weights(first: Tensor, size: Tensor, bins: int, ratio: int, length: int) -> Tensor:
    """Return the weights of pixels in the bins along a side: (n, bins, length).

    first, size: (n), in pixels.
    """
    width = (size / bins).view(-1, 1, 1, 1)
    count = torch.full_like(width, ratio) if ratio > 0 else torch.ceil(width)
    step = width / count.clamp(min=1)
    start = first.view(-1, 1, 1, 1) + width * _numbers(bins, first).view(1, -1, 1, 1)
    pixels = _numbers(length, first).view(1, 1, -1, 1)
    near = _numbers(ratio if ratio > 0 else _NEAR, first)
    if ratio <= 0:
        apart = torch.where(step > 0, step, 1.0)
        near = near + torch.floor((pixels - 1 - start) / apart - 0.5).clamp(min=0)
    place = start + (near + 0.5) * step
    there = (near < count) & (place >= -1) & (place <= length)
    weight = (1 - (place.clamp(0, length - 1) - pixels).abs()).clamp(min=0)
    return (weight * there).sum(3) / count.squeeze(3).clamp(min=1)


def _numbers(count: int, like: Tensor) -> Tensor:
    """Return 0, 1, ... as a tensor of the type of `like`, on its device."""
    return torch.arange(count, dtype=like.dtype, device=like.device)


# The first corner, the size and the rotation of each region, as (y, x).
Geometry = tuple[Tensor, Tensor, Tensor | None]


def _samples(rules: RoIRules, number: Tensor, geometry: Geometry, height: int, width: int) -> Bags:
    """Return which pixels each bin is a sum of, and with which weights."""
    corner, size, turn = geometry
    n, bins = size.shape[0], rules.bins
    if rules.ratio > 0:
        grid = torch.full((n, 2), rules.ratio, dtype=torch.long, device=size.device)
    else:
        grid = torch.ceil(size / size.new_tensor(bins)).long()
    bags = Bags(n * bins[0] * bins[1])
    # Regions with the same grid are computed together: there are few different grids.
    for up, across in torch.unique(grid, dim=0).tolist():
        if up <= 0 or across <= 0:
            continue
        rows = ((grid[:, 0] == up) & (grid[:, 1] == across)).nonzero().view(-1)
        y = _offsets(size[rows, 0], bins[0], up)
        x = _offsets(size[rows, 1], bins[1], across)
        y, x = corner[rows, :1] + y, corner[rows, 1:] + x
        y, x = torch.broadcast_tensors(y[:, :, None], x[:, None, :])  # type: ignore[no-untyped-call]
        if turn is not None:
            y, x = turned(y, x, turn[rows])
        shape = (len(rows), bins[0], up, bins[1], across)
        y, x = (one.reshape(shape).transpose(2, 3).flatten(3) for one in (y, x))
        index, weight = corners(y, x, height, width)
        index = index + (number[rows] * height * width).view(-1, 1, 1, 1)
        bags.add(rows, index, weight / (up * across))
    return bags


def _offsets(size: Tensor, bins: int, count: int) -> Tensor:
    """Return the offsets of samples along a side of the regions: (regions, bins * count)."""
    step = size.view(-1, 1, 1) / bins
    first = torch.arange(bins, dtype=size.dtype, device=size.device).view(1, -1, 1)
    inner = torch.arange(count, dtype=size.dtype, device=size.device).view(1, 1, -1) + 0.5
    return (first * step + inner * step / count).flatten(1)


def _upright(regions: Tensor, rules: RoIRules) -> Geometry:
    """Return the geometry of regions x1, y1, x2, y2."""
    offset = 0.5 if rules.aligned else 0.0
    low = regions[:, [1, 0]] * rules.scale - offset
    size = regions[:, [3, 2]] * rules.scale - offset - low
    return low, _checked(size, rules), None


def _rotated(regions: Tensor, rules: RoIRules) -> Geometry:
    """Return the geometry of regions center x, center y, width, height, degrees."""
    offset = 0.5 if rules.aligned else 0.0
    center = regions[:, [1, 0]] * rules.scale - offset
    size = _checked(regions[:, [3, 2]] * rules.scale, rules)
    angle = regions[:, 4:] * (math.pi / 180)
    return -size / 2, size, torch.cat([angle.cos(), angle.sin(), center], 1)


def _checked(size: Tensor, rules: RoIRules) -> Tensor:
    if not rules.aligned:
        return size.clamp(min=1)
    require_all(size >= 0, "the sides of regions are not negative")
    return size


class Bags:
    """The pixels that each of `count` bins is a sum of, and their weights."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.parts: list[tuple[Tensor, Tensor, Tensor]] = []

    def add(self, rows: Tensor, index: Tensor, weight: Tensor) -> None:
        """Add pixels and weights of the bins of regions `rows`: both (rows, up, across, n)."""
        bins = index.shape[1] * index.shape[2]
        places = (rows.view(-1, 1) * bins + torch.arange(bins, device=rows.device)).view(-1)
        self.parts.append((places, index.flatten(0, 2), weight.flatten(0, 2)))

    def summed(self, rows: Tensor) -> Tensor:
        """Return the sums of `rows` (pixels, C) by bin: (bins, C)."""
        made = rows.new_zeros(self.count, rows.shape[1])
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


def _geometry(regions: Tensor, rules: RoIRules) -> Geometry:
    return (_upright if rules.sides == 4 else _rotated)(regions, rules)


def _aligned(x: Tensor, r: Tensor, rules: RoIRules) -> Tensor:
    """Return bins (n, C, pooled_h, pooled_w) by torch, in the order of the images."""
    x = rules.order.first(x)
    require(x.dim() == 4, "X has 4 dimensions", x)
    number, regions = regions_of(r, rules.sides, x.shape[0])
    require_pixels(x, r)
    geometry = _geometry(regions, rules)
    if rules.sides == 4 and not has_values(x, r):
        corner, size, _ = geometry
        made = aligned_by_products(x, number, corner, size, rules.bins, rules.ratio)
        return rules.order.last(made)
    bags = _samples(rules, number, geometry, x.shape[2], x.shape[3])
    made = bags.summed(as_rows(x)).view(r.shape[0], *rules.bins, x.shape[1])
    return made.movedim(-1, 1) if rules.order.is_first else made


def are_of(rois: Tensor, images: int, sides: int = 4) -> bool:
    """Return whether regions (n, 1 + `sides`) have image indices below `images`."""
    if rois.dim() != 2 or rois.shape[1] != 1 + sides or not takes_kernels(rois):
        return False
    return run_kernel(roi_align_kernels.are_of, rois, *rois.shape, images, sides)


_KERNELS = {4: roi_align_kernels.roi_align, 5: roi_align_kernels.roi_align_rotated}


@operator("RoIAlign", gradient="$Gradient i0 i1 g0 > 0")
@operator("RoIAlignRotated", gradient="$Gradient i0 i1 g0 > 0", effects=("errors",))
def roi_align(x: Tensor, rois: Tensor, *, rules: RoIRules, out: Out = None) -> Tensor:
    """Sample regions: (X: (N, C, H, W), R: (n, 4) or (n, 5)) -> (n, C, pooled_h, pooled_w).

    A region is x1, y1, x2, y2, preceded by the image index if there are several images. Each bin is
    the mean of bilinear samples in it. For the arguments see RoIRules. A region of RoIAlignRotated
    is center x, center y, width, height, angle in degrees.
    Raises EnforceNotMet: a region has no image, or an image without pixels.
    """
    sides = rules.sides
    if not rules.order.is_first or x.dim() != 4 or not takes_kernels(x, rois):
        return _aligned(x, rois, rules)
    images, channels, height, width = x.shape
    count = rois.shape[0]
    wide = rois.dim() == 2 and rois.shape[1] in (sides, sides + 1)
    if rules.aligned or not wide or not images:  # checks them
        _geometry(regions_of(rois, sides, images)[1], rules)
    require_pixels(x, rois)
    made = x.new_empty(count, channels, *rules.bins) if out is None else out
    if not made.numel():
        return made
    sizes = images, count, rois.shape[1], channels, height, width, *rules.bins
    given = (*sizes, rules.scale, rules.ratio, rules.aligned)
    return run_kernel(_KERNELS[sides], x, rois, made, *given)


@operator("RoIAlignGradient", effects=("values",))
@operator("RoIAlignRotatedGradient", effects=("values",))
def roi_align_gradient(x: Tensor, rois: Tensor, dy: Tensor, *, rules: RoIRules) -> Tensor:
    """(X, R, dY) -> dX: each bin's gradient, added to the pixels it is the mean of."""
    require(rules.order.is_first, "order is NCHW, not NHWC")
    require(x.dim() == 4, "X has 4 dimensions", x)
    n, channels, height, width = x.shape
    sizes = [*rois.shape[:1], channels, *rules.bins]
    require(list(dy.shape) == sizes, f"dY has the sizes {sizes} of Y", dy)
    if takes_kernels(x, rois, dy) and not rules.aligned and are_of(rois, n, rules.sides):
        require_pixels(x, rois)
        counts = n, *rois.shape, channels, height, width, *rules.bins
        given = (*counts, rules.scale, rules.ratio, rules.aligned, True)
        return _KERNELS[rules.sides](torch.empty_like(x), rois, dy, *given)
    number, regions = regions_of(rois, rules.sides, n)
    require_pixels(x, rois)
    bags = _samples(rules, number, _geometry(regions, rules), height, width)
    made = bags.spread(as_rows(dy), n * height * width)
    return made.view(n, height, width, channels).movedim(-1, 1)
