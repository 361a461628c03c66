# SPDX-License-Identifier: Apache-2.0
"""Boxes collected from the levels of a feature pyramid, and distributed to them."""

from __future__ import annotations

import math

import numpy as np

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.boxes import boxes as box
from bridge.caffe2.operators.boxes.box_operator import BoxOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CollectAndDistributeFpnRpnProposals", "CollectRpnProposals", "DistributeFpnProposals"]


class Levels(BoxOperator):
    """An operator on the levels of a feature pyramid."""

    def collected(self) -> NDArray[np.float32]:
        """Return the best boxes (n, 5) of all levels, at most `rpn_post_nms_topN` (2000)."""
        levels = self.levels("rpn", 2, 6)
        self.enforce(
            self.InputSize() == 2 * levels, "there are boxes and scores of each level", levels
        )
        boxes = np.concatenate([self.array(i, None, 5) for i in range(levels)])
        scores = np.concatenate([self.array(i, None) for i in range(levels, 2 * levels)])
        self.enforce(len(boxes) == len(scores), "there is one score per box", boxes, scores)
        most = self.GetSingleArgument("rpn_post_nms_topN", 2000)
        best: NDArray[np.float32] = boxes[box.by_score(scores, most)]
        return best

    def levels(self, kind: str, low: int, high: int) -> int:
        """Return the number of levels, from the arguments `KIND_min_level` and `KIND_max_level`."""
        self.low = self.GetSingleArgument(f"{kind}_min_level", low)
        self.high = self.GetSingleArgument(f"{kind}_max_level", high)
        self.enforce(
            self.low <= self.high, "the lowest level is not above the highest", self.low, self.high
        )
        return int(self.high - self.low + 1)

    def distribute(self, boxes: NDArray[np.float32], first: int) -> None:
        """Set outputs from `first` on to the boxes of each level, then to their input order."""
        levels = self.levels("roi", 2, 5)
        self.enforce(
            self.OutputSize() == first + levels + 1,
            "there is an output per level, and one more",
            levels,
        )
        scale = np.float32(self.GetSingleArgument("roi_canonical_scale", 224.0))
        middle = np.float32(self.GetSingleArgument("roi_canonical_level", 4.0))
        sides = boxes[:, -2:] - boxes[:, -4:-2] + np.float32(self.plus_one)
        areas = sides[:, 0] * sides[:, 1]
        doubled = np.log(np.sqrt(np.maximum(areas, 0)) / scale + np.float32(1e-6))
        level = np.floor(middle + doubled / np.float32(math.log(2)))
        level = np.clip(level, self.low, self.high).astype(np.int64)
        places = []
        for i in range(levels):
            rows = np.flatnonzero(level == self.low + i)
            places.append(rows)
            self.store(first + i, boxes[rows], len(rows), boxes.shape[1])
        order = np.argsort(np.concatenate(places), kind="stable")
        self.out(first + levels, (len(boxes),), c10.int32).numpy()[...] = order


@register_operator("CollectRpnProposals")
class CollectRpnProposals(Levels):
    """Merge boxes (n, 5) and scores (n) of all levels -> the best boxes, best first.

    Inputs: boxes of each level, then scores of each level.
    Arguments: `rpn_min_level` (2), `rpn_max_level` (6), `rpn_post_nms_topN` (2000): the most boxes.
    Follows caffe2/operators/collect_and_distribute_fpn_rpn_proposals_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        best = self.collected()
        self.store(0, best, *best.shape)


@register_operator("DistributeFpnProposals")
class DistributeFpnProposals(Levels):
    """Distribute boxes (n, 5) by size -> the boxes of each level, then their order (n).

    The last output restores the input order from the concatenated levels.
    Arguments: `roi_min_level` (2), `roi_max_level` (5); `roi_canonical_level` (4): the level of
    boxes with sides of `roi_canonical_scale` (224). Boxes with sides twice as long are one level
    higher.
    Follows caffe2/operators/collect_and_distribute_fpn_rpn_proposals_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        self.distribute(self.array(0, None, None), 0)


@register_operator("CollectAndDistributeFpnRpnProposals")
class CollectAndDistributeFpnRpnProposals(Levels):
    """CollectRpnProposals, then DistributeFpnProposals of its result."""

    def RunOnDevice(self) -> None:
        best = self.collected()
        self.store(0, best, *best.shape)
        self.distribute(best, 1)
