# SPDX-License-Identifier: Apache-2.0
"""RMACRegions: a grid of squares of several sizes over an image."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import require, single


@operator("RMACRegions", types=None, rearranges=(), gradient="undefined")
def rmac_regions(x: Tensor, *, scales: int = 3, overlap: float = 0.4) -> Tensor:
    """X: (N, C, H, W) -> squares of several sizes over each image, (n, 5) as RoIs.

    Of X only its sizes are used. `scales`: the number of sizes. `overlap`: their approximate
    overlap.
    Follows RMACRegionsOp, caffe2/operators/rmac_regions_op.cc, PyTorch 1.8.1.
    """
    require(x.dim() == 4, "X has 4 dimensions", x)
    images, _, height, width = x.shape
    if not x.numel():
        return torch.empty((0, 5), dtype=torch.float32, device=x.device)
    side, more = min(height, width), 0
    if height != width:
        # In float32 like Caffe2: rounding decides between equally good numbers of steps.
        area, longer = side * side, max(height, width)
        steps = [single((longer - side) / k) for k in range(1, 7)]
        shared = [single(single(area - single(side * step)) / area) for step in steps]
        away = [abs(single(one - single(overlap))) for one in shared]
        more = away.index(min(away)) + 1
    columns, rows = (more if width > height else 0), (more if height > width else 0)
    found = []
    for scale in range(1, scales + 1):
        size = 2 * side // (scale + 1)
        if not size:
            break
        across = starts(width, size, scale + columns)
        down = starts(height, size, scale + rows)
        found += [[x1, y1, x1 + size - 1, y1 + size - 1] for x1 in across for y1 in down]
    regions = torch.tensor(found, dtype=torch.float32, device=x.device).view(-1, 4)
    numbers = torch.arange(images, dtype=torch.float32, device=x.device).view(-1, 1, 1)
    given = numbers.expand(-1, len(found), 1), regions.expand(images, -1, 4)
    return torch.cat(given, 2).view(-1, 5)


def starts(length: int, size: int, count: int) -> list[int]:
    """Return the starts of `count` pieces of `size` evenly distributed over `length`."""
    step = (length - size) / (count - 1) if count > 1 else 0.0
    return [min(int(step * i), length - size) for i in range(count)]
