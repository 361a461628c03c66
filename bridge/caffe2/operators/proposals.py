# SPDX-License-Identifier: Apache-2.0
"""Boxes of object detection: proposed, refined, chosen."""

from __future__ import annotations

import numpy as np

from bridge import c10
from bridge.caffe2.operators import boxes as box
from bridge.caffe2.operators.float_operator import FloatOperator
from bridge.caffe2.registry import register_operator

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

__all__ = ["BBoxTransform", "BoxOperator", "BoxWithNMSLimit", "GenerateProposals"]


class BoxOperator(FloatOperator):
    """What the operators of boxes have in common; argument `legacy_plus_one` (True).

    With it a box reaches over its last pixel: its width is x2 - x1 + 1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.plus_one = bool(self.GetSingleArgument("legacy_plus_one", True))
        self.enforce(not self.GetSingleArgument("rotated", False), "boxes are upright, not rotated")

    def array(self, i: int, *shape: int | None) -> NDArray[np.float32]:
        """Give input `i` as an array over its memory, of these sizes where they are not None."""
        found: NDArray[np.float32] = self.x(i).numpy()
        fits = len(shape) == found.ndim and all(
            size is None or size == own for size, own in zip(shape, found.shape, strict=True)
        )
        self.enforce(fits, f"input {i} is of the sizes {list(shape)}, None being any", found)
        return found

    def give(self, i: int, values: Sequence[Any] | NDArray[Any], *shape: int) -> None:
        """Put values of these sizes into output `i`, as float32."""
        self.out(i, shape).numpy()[...] = np.asarray(values, np.float32).reshape(shape)


@register_operator("GenerateProposalsCPP")
@register_operator("GenerateProposals")
class GenerateProposals(BoxOperator):
    """(scores: (N, A, H, W), deltas: (N, 4 A, H, W), images: (N, 3), anchors: (A, 4)) -> boxes.

    Outputs: (n, 5), the number of the image and the box, and their scores (n). An image is height,
    width and scale. Anchors are shifted to each place, moved by the deltas and clipped; of the
    `pre_nms_topN` (6000) best, those that are large enough (`min_size`, 16) and overlap no better
    one by more than `nms_thresh` (0.7) are kept, `post_nms_topN` (300) at most. A place is
    1 / `spatial_scale` (1 / 16) pixels wide. Of equal scores the earlier ranks first.

    Raises EnforceNotMet: sizes that do not go together, rotated anchors.
    Follows GenerateProposalsOp, caffe2/operators/generate_proposals_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        scores, images = self.array(0, None, None, None, None), self.array(2, None, 3)
        n, anchors, height, width = scores.shape
        deltas = self.array(1, n, 4 * anchors, height, width)
        shapes = self.array(3, anchors, 4)
        self.enforce(images.shape[0] == n, "there is an image for each of the scores", images)
        found = [
            self._of_image(scores[i].reshape(-1), deltas[i], images[i], shapes) for i in range(n)
        ]
        rois = [
            np.concatenate([np.full((len(kept), 1), i, np.float32), kept], axis=1)
            for i, (kept, _) in enumerate(found)
        ]
        total = sum(map(len, rois))
        self.give(0, np.concatenate(rois) if rois else [], total, 5)
        self.give(1, np.concatenate([one for _, one in found]) if rois else [], total)

    def _of_image(
        self,
        scores: NDArray[np.float32],
        deltas: NDArray[np.float32],
        image: NDArray[np.float32],
        anchors: NDArray[np.float32],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Give the boxes (n, 4) and their scores (n)."""
        _, height, width = deltas.shape
        before = self.GetSingleArgument("pre_nms_topN", 6000)
        after = self.GetSingleArgument("post_nms_topN", 300)
        order = box.by_score(scores, before if 0 < before < scores.size else -1)
        scores = scores[order]
        which, place = np.divmod(order, height * width)
        up, across = np.divmod(place, width)
        stride = np.float32(1.0 / np.float32(self.GetSingleArgument("spatial_scale", 1.0 / 16)))
        shift = np.stack([across, up], axis=1).astype(np.float32) * stride
        boxes = anchors[which] + np.concatenate([shift, shift], axis=1)
        by = deltas.reshape(-1, 4, height * width)[which, :, place]
        boxes = box.transformed(boxes, by, (1, 1, 1, 1), self.plus_one)
        boxes = box.clipped(boxes, int(image[0]), int(image[1]), self.plus_one)
        smallest = float(np.float32(self.GetSingleArgument("min_size", 16.0)))
        rows = box.large_enough(boxes, smallest, image, self.plus_one)
        most = after if 0 < after < rows.size else -1
        threshold = self.GetSingleArgument("nms_thresh", 0.7)
        keep = box.kept(boxes, rows, threshold, most, self.plus_one)
        return boxes[keep], scores[keep]


@register_operator("BBoxTransform")
class BBoxTransform(BoxOperator):
    """(boxes: (n, 4) or (n, 5), deltas: (n, 4 classes), images: (N, 3)) -> boxes of each class.

    Boxes of several images have the image's number in front, and come in its order; a second
    output gives how many there are of each (N). Arguments: `weights` that deltas are divided by
    (1, 1, 1, 1), `apply_scale` (True): the boxes are those of the scaled image.

    Raises EnforceNotMet: sizes that do not go together, rotated boxes.
    Follows BBoxTransformOp, caffe2/operators/bbox_transform_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        weights = self.GetRepeatedArgument("weights", [1.0] * 4)
        self.enforce(len(weights) == 4, "there are four weights", weights)
        boxes, images = self.array(0, None, None), self.array(2, None, 3)
        deltas = self.array(1, boxes.shape[0], None)
        self.enforce(boxes.shape[1] in (4, 5), "a box has four sides", boxes)
        self.enforce(deltas.shape[1] % 4 == 0, "there are four deltas for each class", deltas)
        counts = [boxes.shape[0]]
        if boxes.shape[1] == 5:
            numbers = boxes[:, 0].astype(np.int64)
            inside = not numbers.size or 0 <= numbers.min() <= numbers.max() < len(images)
            self.enforce(inside, "a box names an image that there is", images)
            counts = np.bincount(numbers, minlength=len(images)).tolist()
        self.enforce(len(counts) == len(images), "several images have numbers", images)
        made = np.empty_like(deltas)
        start = 0
        for count, image in zip(counts, images, strict=True):
            rows = slice(start, start + count)
            made[rows] = self._of_image(boxes[rows, -4:], deltas[rows], image, weights)
            start += count
        self.give(0, made, *deltas.shape)
        if self.OutputSize() > 1:
            self.give(1, counts, len(images))

    def _of_image(
        self,
        boxes: NDArray[np.float32],
        deltas: NDArray[np.float32],
        image: NDArray[np.float32],
        weights: Sequence[float],
    ) -> NDArray[np.float32]:
        scale = image[2]
        height, width = (int(side / scale + np.float32(0.5)) for side in image[:2])
        classes = deltas.shape[1] // 4
        every = np.repeat(boxes / scale, classes, axis=0)
        moved = box.transformed(every, deltas.reshape(-1, 4), weights, self.plus_one)
        moved = box.clipped(moved, height, width, self.plus_one)
        if self.GetSingleArgument("apply_scale", True):
            moved = moved * scale
        return moved.reshape(deltas.shape)


@register_operator("BoxWithNMSLimit")
class BoxWithNMSLimit(BoxOperator):
    """(scores: (n, classes), boxes: (n, 4 classes), perhaps counts (N)) -> the best boxes.

    Counts say how many boxes are of each image.
    Outputs: scores, boxes and classes of what is kept, by image and class; then perhaps how many of
    each image (N), the rows that they were, and how many of each image and class. Class 0 is the
    background. A box is kept whose score is above `score_thresh` (0.05) and that overlaps no better
    one of its class by more than `nms` (0.3), `detections_per_im` (100) of an image at most.
    `soft_nms_enabled` lowers scores instead of leaving out (`soft_nms_method` linear or gaussian,
    `soft_nms_sigma` 0.5, `soft_nms_min_score_thres` 0.001). Other arguments:
    `cls_agnostic_bbox_reg` (False): boxes for all classes in one; `input_boxes_include_bg_cls`,
    `output_classes_include_bg_cls` (True).

    Raises EnforceNotMet: sizes that do not go together, rotated boxes.
    Follows BoxWithNMSLimitOp, caffe2/operators/box_with_nms_limit_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        method = self.GetSingleArgument("soft_nms_method", "linear")
        self.enforce(method in ("linear", "gaussian"), "soft_nms_method", method)
        scores, boxes = (self._matrix(i) for i in (0, 1))
        n, classes = scores.shape
        self.enforce(boxes.shape[0] == n, "there is a box for each score", boxes, scores)
        in_background = bool(self.GetSingleArgument("input_boxes_include_bg_cls", True))
        out_background = bool(self.GetSingleArgument("output_classes_include_bg_cls", True))
        agnostic = bool(self.GetSingleArgument("cls_agnostic_bbox_reg", False))
        self.first_score = int(in_background)
        self.first_box = None if agnostic else int(in_background)
        own = 1 if agnostic else classes - (not in_background)
        self.enforce(boxes.shape[1] == 4 * own, "there is a box for each class", boxes, scores)
        counts = [n]
        if self.InputSize() > 2:
            counts = self.x(2, (c10.float32, c10.int32)).int().tolist()
        self.enforce(sum(counts) == n, "the boxes of the images add up", counts, boxes)
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
            columns = [np.empty(0), np.empty((0, 4)), np.empty(0), np.empty(0)]
        total = len(columns[0])
        for i, column in enumerate(columns[:3]):
            self.give(i, column, *((total, 4) if i == 1 else (total,)))
        if self.OutputSize() > 3:
            self.give(3, [sum(one) for one in by_class], len(counts))
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
        """Give the boxes of class `j`, the background being 0."""
        first = 0 if self.first_box is None else 4 * (j - 1 + self.first_box)
        return boxes[:, first : first + 4]

    def _of_image(
        self, scores: NDArray[np.float32], boxes: NDArray[np.float32], method: str
    ) -> tuple[list[list[int]], NDArray[np.float32]]:
        """Give the rows kept of each class but the background, and the scores."""
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
