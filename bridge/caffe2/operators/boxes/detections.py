# SPDX-License-Identifier: Apache-2.0
"""BoxWithNMSLimit: the best boxes of each class."""

from __future__ import annotations

import numpy as np

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.boxes import boxes as box
from bridge.caffe2.operators.boxes.box_operator import BoxOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

__all__ = ["BoxWithNMSLimit"]


@register_operator("BoxWithNMSLimit")
class BoxWithNMSLimit(BoxOperator):
    """Keep the best boxes of each class: (scores, boxes, counts) -> (scores, boxes, classes, ...).

    Inputs: scores (n, classes), boxes (n, 4 classes), optionally the number of boxes of each image
    (N).
    Outputs: scores, boxes and classes of the kept boxes, ordered by image and class; optionally the
    number kept of each image (N), their input rows, and the numbers by image and class (N,
    classes). Class 0 is the background. A box is kept if its score is above `score_thresh` (0.05)
    and it overlaps no better box of its class by more than `nms` (0.3); at most `detections_per_im`
    (100) per image. `soft_nms_enabled` (False) lowers scores instead of removing boxes, with
    `soft_nms_method` (linear or gaussian), `soft_nms_sigma` (0.5) and `soft_nms_min_score_thres`
    (0.001).
    Arguments: `cls_agnostic_bbox_reg` (False): one box for all classes;
    `input_boxes_include_bg_cls`, `output_classes_include_bg_cls` (True).
    Raises EnforceNotMet: sizes do not match.
    Follows BoxWithNMSLimitOp, caffe2/operators/box_with_nms_limit_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        method = self.GetSingleArgument("soft_nms_method", "linear")
        self.enforce(
            method in ("linear", "gaussian"), "soft_nms_method is linear or gaussian", method
        )
        scores, boxes = (self._matrix(i) for i in (0, 1))
        n, classes = scores.shape
        self.enforce(boxes.shape[0] == n, "there is one box per score", boxes, scores)
        in_background = bool(self.GetSingleArgument("input_boxes_include_bg_cls", True))
        out_background = bool(self.GetSingleArgument("output_classes_include_bg_cls", True))
        agnostic = bool(self.GetSingleArgument("cls_agnostic_bbox_reg", False))
        self.first_score = int(in_background)
        self.first_box = None if agnostic else int(in_background)
        own = 1 if agnostic else classes - (not in_background)
        self.enforce(
            boxes.shape[1] == self.sides * own, "there is one box per class", boxes, scores
        )
        counts = [n]
        if self.InputSize() > 2:
            counts = self.x(2, (c10.float32, c10.int32)).int().tolist()
        self.enforce(
            sum(counts) == n, "the numbers of boxes per image add up to all boxes", counts, boxes
        )
        found: list[tuple[NDArray[Any], ...]] = []
        by_class: list[list[int]] = []
        start = 0
        for count in counts:
            rows = slice(start, start + count)
            keeps, lowered = self._of_image(scores[rows], boxes[rows], method)
            by_class.append([0, *map(len, keeps)])
            for j, keep in enumerate(keeps, 1):
                named = np.full(len(keep), j - (not out_background), np.float32)
                own_boxes = self._of_class(boxes[rows], j)[keep]
                own_scores = lowered[keep, j - 1 + self.first_score]
                found.append((own_scores, own_boxes, named, np.asarray(keep, np.int32)))
            start += count
        columns = [np.concatenate(column) for column in zip(*found, strict=True)]
        if not columns:
            columns = [np.empty(0), np.empty((0, self.sides)), np.empty(0), np.empty(0)]
        total = len(columns[0])
        for i, column in enumerate(columns[:3]):
            self.store(i, column, *((total, self.sides) if i == 1 else (total,)))
        if self.OutputSize() > 3:
            self.store(3, [sum(one) for one in by_class], len(counts))
        if self.OutputSize() > 4:
            self.out(4, (total,), c10.int32).numpy()[...] = columns[3]
        if self.OutputSize() > 5:
            self.out(5, (len(counts), classes), c10.int32).numpy()[...] = by_class

    def _matrix(self, i: int) -> NDArray[np.float32]:
        x = self.x(i)
        flat = x.dim() == 2 or (x.dim() == 4 and x.shape[2] == x.shape[3] == 1)
        self.enforce(flat, "scores and boxes are matrices", x)
        found: NDArray[np.float32] = x.view(x.shape[:2]).numpy()
        return found

    def _of_class(self, boxes: NDArray[np.float32], j: int) -> NDArray[np.float32]:
        """Return the boxes of class `j`; class 0 is the background."""
        first = 0 if self.first_box is None else self.sides * (j - 1 + self.first_box)
        return boxes[:, first : first + self.sides]

    def _of_image(
        self, scores: NDArray[np.float32], boxes: NDArray[np.float32], method: str
    ) -> tuple[list[list[int]], NDArray[np.float32]]:
        """Return the kept rows of each class but the background, and the scores."""
        limit = self.GetSingleArgument("detections_per_im", 100)
        threshold = self.GetSingleArgument("nms", 0.3)
        smallest = np.float32(self.GetSingleArgument("score_thresh", 0.05))
        softly = bool(self.GetSingleArgument("soft_nms_enabled", False))
        lowered = scores.copy() if softly else scores
        keeps: list[list[int]] = []
        for j in range(1, scores.shape[1]):
            column = j - 1 + self.first_score
            rows = np.flatnonzero(scores[:, column] > smallest)
            own = self._of_class(boxes, j)
            if softly:
                keep, lowered[:, column] = box.kept_softly(
                    own,
                    scores[:, column],
                    rows,
                    self.GetSingleArgument("soft_nms_sigma", 0.5),
                    threshold,
                    self.GetSingleArgument("soft_nms_min_score_thres", 0.001),
                    method,
                    self.plus_one,
                )
            else:
                order = rows[box.by_score(scores[rows, column])]
                keep = box.kept(own, order, threshold, limit or -1, self.plus_one)
            keeps.append(keep)
        if 0 < limit < sum(map(len, keeps)):
            pairs = [(j, row) for j, keep in enumerate(keeps) for row in keep]
            values = np.array([lowered[row, j + self.first_score] for j, row in pairs])
            keeps = [[] for _ in keeps]
            for at in box.by_score(values, limit):
                j, row = pairs[at]
                keeps[j].append(row)
        return keeps, lowered
