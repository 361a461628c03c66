# SPDX-License-Identifier: Apache-2.0
"""HeatmapMaxKeypoint: the maxima of heat maps."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import require

_FARTHEST = 1.5  # largest offset from the maximum, in pixels
_FLAT = 1e-4  # the parabola is flat if its determinant is below this


@operator("HeatmapMaxKeypoint", gradient="undefined")
def heatmap_max_keypoint(
    heatmaps: Tensor, bboxes: Tensor, *, should_output_softmax: bool = False
) -> Tensor:
    """(maps, boxes) -> (n, 4, K): x, y, score and probability of each map's maximum.

    Inputs: square maps (n, K, size, size), boxes (n, 4) as x0, y0, x1, y1. The maximum is that of a
    parabola through the largest pixel and its neighbours, mirrored at edges. The probability is 0
    unless `should_output_softmax` is set.
    Follows HeatmapMaxKeypointOp, caffe2/operators/heatmap_max_keypoint_op.cc, PyTorch 1.8.1.
    """
    require(heatmaps.dim() == 4, "heat maps have four dimensions", heatmaps)
    n, count, size, width = heatmaps.shape
    require(size >= 2 and size == width, "maps are square, with sides of 2 or more", heatmaps)
    fits = bboxes.dim() == 2 and bboxes.shape[0] == n and bboxes.shape[1] >= 4
    require(fits, "there are four coordinates per box", bboxes)
    if not heatmaps.numel():
        return heatmaps.new_empty(n, 4, count)
    flat = heatmaps.reshape(n, count, -1)
    score, place = flat.max(2)
    y, x = place // size, place % size
    dx, dy, rise = _peak(_neighbours(flat, x, y, size))
    probability = torch.zeros_like(score)
    if should_output_softmax:
        probability = score.exp() / flat.exp().sum(2)
    lengths = (bboxes[:, 2:4] - bboxes[:, :2]).clamp(min=1)
    x, y = x.to(score.dtype), y.to(score.dtype)
    px = bboxes[:, :1] + (0.5 + x + dx) * lengths[:, :1] / size
    py = bboxes[:, 1:2] + (0.5 + y + dy) * lengths[:, 1:] / size
    return torch.stack([px, py, score + rise, probability], 1)


def _neighbours(flat: Tensor, x: Tensor, y: Tensor, size: int) -> tuple[Tensor, ...]:
    """Return the 3 x 3 values around each point, row by row."""
    steps = torch.tensor([-1, 0, 1], device=flat.device)

    def mirrored(at: Tensor) -> Tensor:
        to = at + steps
        return torch.where((to < 0) | (to >= size), at - steps, to)

    places = mirrored(y[..., None])[..., None] * size + mirrored(x[..., None])[..., None, :]
    return flat.gather(2, places.flatten(2)).unbind(2)


def _peak(grid: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the offset (x, y) of the maximum from the middle, and its excess over it."""
    nw, north, ne, west, middle, east, sw, south, se = grid
    bx, by = -(east - west) / 2, -(south - north) / 2
    axx, ayy = west - 2 * middle + east, north - 2 * middle + south
    axy = (se - sw - ne + nw) / 4
    determinant = axx * ayy - axy * axy
    flat = determinant.abs() < _FLAT
    divisor = torch.where(flat, 1.0, determinant)
    dx, dy = (ayy * bx - axy * by) / divisor, (axx * by - axy * bx) / divisor
    farther = torch.maximum(dx.abs(), dy.abs())
    shrink = torch.where(farther > _FARTHEST, _FARTHEST / farther, 1.0)
    dx, dy = dx * shrink, dy * shrink
    rise = (axx * dx * dx + 2 * axy * dx * dy + ayy * dy * dy) / 2 - bx * dx - by * dy
    return tuple(torch.where(flat, 0.0, one) for one in (dx, dy, rise))
