# SPDX-License-Identifier: Apache-2.0
"""RoIAlign of upright regions as products of matrices, which torch traces.

An output element is a mean over a grid of samples, whose weights are products of one along y and
one along x. So a region is three matrices in a row: the weights of the rows in the bins, a channel
of the image, and the weights of the columns. Sizes do not depend on the regions, although the
number of samples does if there is one for each pixel.
"""

from __future__ import annotations

import torch
from torch import Tensor

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
