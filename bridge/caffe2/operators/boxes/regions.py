# SPDX-License-Identifier: Apache-2.0
"""Regions: collected from the levels of a feature pyramid, distributed to them, and in grids.

And Detectron's parts of a tensor that another one selects, SampleAs and SpatialNarrowAs, which
Caffe2 computes on CUDA alone. Follows caffe2/operators and modules/detectron, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.operators.base.checks import INT32, require, single
from bridge.caffe2.operators.boxes.box_rules import array_of, by_score, tensor_of


class Collected:
    """Which boxes of the levels are collected.

    Arguments: `rpn_min_level` (2), `rpn_max_level` (6), `rpn_post_nms_topN` (2000): the most boxes,
    or 0 for all. Raises EnforceNotMet: there are no levels.
    """

    takes = "int rpn_min_level, int rpn_max_level, int rpn_post_nms_topN"

    def __init__(self, arguments: Arguments) -> None:
        low, high = _levels(arguments, "rpn", 2, 6)
        self.levels = high - low + 1
        self.most = arguments.single("rpn_post_nms_topN", 2000)

    def of(self, inputs: Sequence[Tensor]) -> NDArray[np.float32]:
        """Return the best boxes (n, 5) of all levels."""
        levels = self.levels
        require(len(inputs) == 2 * levels, "there are boxes and scores of each level", levels)
        boxes = np.concatenate([array_of("boxes", x, None, 5) for x in inputs[:levels]])
        scores = np.concatenate([array_of("scores", x, None) for x in inputs[levels:]])
        require(len(boxes) == len(scores), "there is one score per box", boxes, scores)
        return boxes[by_score(scores, self.most or len(boxes))]


class Distributed:
    """To which levels boxes are distributed.

    Arguments: `roi_min_level` (2), `roi_max_level` (5); `roi_canonical_level` (4): the level of
    boxes with sides of `roi_canonical_scale` (224); `legacy_plus_one` (True): a box includes its
    last pixel. Boxes with sides twice as long are one level higher. Raises EnforceNotMet: there are
    no levels.
    """

    takes = (
        "int roi_min_level, int roi_max_level, float roi_canonical_scale, "
        "float roi_canonical_level, bool legacy_plus_one"
    )

    def __init__(self, arguments: Arguments) -> None:
        self.low, self.high = _levels(arguments, "roi", 2, 5)
        self.scale: float = arguments.single("roi_canonical_scale", 224.0)
        self.middle: float = arguments.single("roi_canonical_level", 4.0)
        self.plus_one = bool(arguments.single("legacy_plus_one", True))

    def of(self, boxes: NDArray[np.float32], outputs: int) -> list[NDArray[np.generic]]:
        """Return the boxes of each level, and the positions that restore the order of all."""
        levels = self.high - self.low + 1
        require(outputs == levels + 1, "there is an output per level, and one more", levels)
        sides = boxes[:, -2:] - boxes[:, -4:-2] + np.float32(self.plus_one)
        areas = sides[:, 0] * sides[:, 1]
        require(not (areas < 0).any(), "no box has a negative area", boxes[areas < 0])
        scale = np.float32(self.scale)
        doubled = np.log(np.sqrt(areas) / scale + np.float32(1e-6))
        level = np.floor(np.float32(self.middle) + doubled / np.float32(math.log(2)))
        level = np.clip(level, self.low, self.high).astype(np.int64)
        places = [np.flatnonzero(level == self.low + i) for i in range(levels)]
        order = np.argsort(np.concatenate(places), kind="stable")
        return [*(boxes[rows] for rows in places), order.astype(np.int32)]


def _levels(arguments: Arguments, kind: str, low: int, high: int) -> tuple[int, int]:
    """Return the lowest and the highest level: the arguments `KIND_min_level`, `KIND_max_level`."""
    low = arguments.single(f"{kind}_min_level", low)
    high = arguments.single(f"{kind}_max_level", high)
    require(low <= high, "the lowest level is not above the highest", low, high)
    return low, high


@operator("CollectRpnProposals", inputs="2-*", gradient="undefined", effects=("values",))
def collect_rpn_proposals(*inputs: Tensor, collected: Collected) -> Tensor:
    """Merge boxes (n, 5) and scores (n) of all levels -> the best boxes, best first.

    Inputs: boxes of each level, then scores of each level; for the arguments see Collected.
    Follows caffe2/operators/collect_and_distribute_fpn_rpn_proposals_op.cc, PyTorch 1.8.1.
    """
    return tensor_of(collected.of(inputs), inputs[0])


@operator("DistributeFpnProposals", outputs="2-*", gradient="undefined", effects=("values",))
def distribute_fpn_proposals(
    rois: Tensor, *, distributed: Distributed, outputs: OutputCount = 5
) -> tuple[Tensor, ...]:
    """Distribute boxes (n, 5) by size -> the boxes of each level, then their order (n).

    Boxes (n, 4) are those of image 0.
    The last output restores the input order from the concatenated levels. For the arguments see
    Distributed.
    Follows caffe2/operators/collect_and_distribute_fpn_rpn_proposals_op.cc, PyTorch 1.8.1.
    """
    boxes = array_of("boxes", rois, None, None)
    require(boxes.shape[1] in (4, 5), "a box has four numbers, or five with its image", rois)
    if boxes.shape[1] == 4:
        boxes = np.insert(boxes, 0, 0, 1)
    found = distributed.of(boxes, outputs)
    return tuple(tensor_of(one, rois) for one in found)


@operator(
    "CollectAndDistributeFpnRpnProposals",
    inputs="2-*",
    outputs="3-*",
    gradient="undefined",
    effects=("values",),
)
def collect_and_distribute_fpn_rpn_proposals(
    *inputs: Tensor, collected: Collected, distributed: Distributed, outputs: OutputCount = 6
) -> tuple[Tensor, ...]:
    """CollectRpnProposals, then DistributeFpnProposals of its result."""
    best = collected.of(inputs)
    found = distributed.of(best, outputs - 1)
    return tuple(tensor_of(one, inputs[0]) for one in (best, *found))


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


def _chosen(x: Tensor, labels: Tensor) -> Tensor:
    """Return the numbers of the rows with a positive label. Raises EnforceNotMet: there is none."""
    require(x.dim() > 0 and labels.dim() > 0, "X and the labels have dimensions", x, labels)
    fits = labels.shape[0] == labels.numel() == x.shape[0]
    require(fits, "there is one label per row of X", labels, x)
    rows = (labels.view(-1) > 0).nonzero().view(-1)
    require(rows.numel() > 0, "a label is positive", labels.tolist())
    return rows


@operator(
    "SampleAs", types={"labels": INT32}, gradient="$Gradient i0 i1 g0 > 0", effects=("values",)
)
def sample_as(x: Tensor, labels: Tensor) -> Tensor:
    """(X: (N, ...), labels: (N)) -> the rows of X with a positive label.

    Raises EnforceNotMet: no label is positive.
    """
    return x.index_select(0, _chosen(x, labels))


@operator("SampleAsGradient", types={"labels": INT32}, effects=("values",))
def sample_as_gradient(x: Tensor, labels: Tensor, dy: Tensor) -> Tensor:
    """(X, labels, dY) -> dX: the rows moved back, 0 elsewhere."""
    rows = _chosen(x, labels)
    require(dy.shape == (len(rows), *x.shape[1:]), "dY has the sizes of Y", dy)
    return torch.zeros_like(x).index_copy(0, rows, dy)


_TYPES = {"a": (c10.float32, c10.int32), "b": None}


def _window(a: Tensor, b: Tensor) -> tuple[int, int]:
    """Return the height and width of B, which are not above those of A."""
    require(a.dim() == 4 and b.dim() in (3, 4), "A has 4 dimensions, B has 3 or 4", a, b)
    kept = a.dim() - 2 if b.dim() == 4 else 1
    require(a.shape[:kept] == b.shape[:kept], "A and B have the same first sizes", a, b)
    height, width = b.shape[-2:]
    require(height <= a.shape[2] and width <= a.shape[3], "B is not larger than A", a, b)
    return height, width


@operator("SpatialNarrowAs", types=_TYPES, gradient="$Gradient i0 i1 g0 > 0")
def spatial_narrow_as(a: Tensor, b: Tensor) -> Tensor:
    """(A: (N, C, H, W), B: (N, C, h, w) or (N, h, w)) -> the upper left (N, C, h, w) of A."""
    height, width = _window(a, b)
    return a[:, :, :height, :width].clone(memory_format=torch.contiguous_format)


@operator("SpatialNarrowAsGradient", types={**_TYPES, "dc": "a"})
def spatial_narrow_as_gradient(a: Tensor, b: Tensor, dc: Tensor) -> Tensor:
    """(A, B, dC) -> dA: dC, with 0 at the right and below."""
    height, width = _window(a, b)
    require(dc.shape == (*a.shape[:2], height, width), "dC has the sizes of C", dc)
    return torch.constant_pad_nd(dc, (0, a.shape[3] - width, 0, a.shape[2] - height))
