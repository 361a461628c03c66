# SPDX-License-Identifier: Apache-2.0
"""GenerateProposals and BBoxTransform: boxes proposed from anchors, and refined by deltas."""

from __future__ import annotations

import numpy as np

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.boxes import boxes as box
from bridge.caffe2.operators.boxes import rotated_boxes as rotated
from bridge.caffe2.operators.boxes.box_operator import BoxOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["BBoxTransform", "GenerateProposals"]


@register_operator("GenerateProposalsCPP")
@register_operator("GenerateProposals")
class GenerateProposals(BoxOperator):
    """Propose boxes (n, 5) and their scores (n) from the scores of shifted anchors.

    Inputs: scores (N, A, H, W), deltas (N, 4 A, H, W), images (N, 3) as height, width and scale,
    anchors (A, 4). Each box is preceded by the index of its image. Anchors with five columns are
    rotated; the 4 and 5 above are then 5 and 6. Anchors are shifted to each place, moved by the
    deltas and clipped. Of the `pre_nms_topN` (6000) best, those are kept that are large enough
    (`min_size`, 16) and overlap no better one by more than `nms_thresh` (0.7), at most
    `post_nms_topN` (300). A place is 1 / `spatial_scale` (1 / 16) pixels wide. Of equal scores the
    earlier ranks first.

    Raises EnforceNotMet: sizes do not match.
    Follows GenerateProposalsOp, caffe2/operators/generate_proposals_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        scores, images = self.array(0, None, None, None, None), self.array(2, None, 3)
        n, anchors, height, width = scores.shape
        shapes = self.array(3, anchors, None)
        sides = shapes.shape[1]
        self.enforce(sides in (4, 5), "an anchor has four or five numbers", shapes)
        deltas = self.array(1, n, sides * anchors, height, width)
        self.enforce(images.shape[0] == n, "there is one image per row of scores", images)
        found = [
            self._of_image(scores[i].reshape(-1), deltas[i], images[i], shapes) for i in range(n)
        ]
        rois = [
            np.concatenate([np.full((len(kept), 1), i, np.float32), kept], axis=1)
            for i, (kept, _) in enumerate(found)
        ]
        total = sum(map(len, rois))
        self.store(0, np.concatenate(rois) if rois else [], total, 1 + sides)
        self.store(1, np.concatenate([one for _, one in found]) if rois else [], total)

    def _of_image(
        self,
        scores: NDArray[np.float32],
        deltas: NDArray[np.float32],
        image: NDArray[np.float32],
        anchors: NDArray[np.float32],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the boxes of an image and their scores (n)."""
        sides = anchors.shape[1]
        _, height, width = deltas.shape
        before = self.GetSingleArgument("pre_nms_topN", 6000)
        after = self.GetSingleArgument("post_nms_topN", 300)
        order = box.by_score(scores, before if 0 < before < scores.size else -1)
        scores = scores[order]
        which, place = np.divmod(order, height * width)
        up, across = np.divmod(place, width)
        stride = np.float32(1.0 / np.float32(self.GetSingleArgument("spatial_scale", 1.0 / 16)))
        shift = np.stack([across, up], axis=1).astype(np.float32) * stride
        again = shift if sides == 4 else np.zeros((len(shift), 3), np.float32)
        boxes = anchors[which] + np.concatenate([shift, again], axis=1)
        by = deltas.reshape(-1, sides, height * width)[which, :, place]
        boxes = self.transformed(boxes, by, (1, 1, 1, 1))
        boxes = self.clipped(boxes, int(image[0]), int(image[1]))
        smallest = float(np.float32(self.GetSingleArgument("min_size", 16.0)))
        if sides == 4:
            rows = box.large_enough(boxes, smallest, image, self.plus_one)
        else:
            rows = rotated.large_enough(boxes, smallest, image)
        most = after if 0 < after < rows.size else -1
        threshold = self.GetSingleArgument("nms_thresh", 0.7)
        keep = box.kept(boxes, rows, threshold, most, self.plus_one)
        return boxes[keep], scores[keep]


@register_operator("BBoxTransform")
class BBoxTransform(BoxOperator):
    """Transform boxes (n, 4) by deltas (n, 4 classes) -> the boxes of each class (n, 4 classes).

    Inputs: boxes, also rotated (n, 5), deltas, images (N, 3). Boxes of several images are preceded
    by the index of the image, in ascending order; a second output is the number of boxes of each
    image (N).
    Arguments: `weights` (1, 1, 1, 1), by which deltas are divided; `apply_scale` (True): the
    results are boxes of the scaled image.
    Raises EnforceNotMet: sizes do not match.
    Follows BBoxTransformOp, caffe2/operators/bbox_transform_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        weights = self.GetRepeatedArgument("weights", [1.0] * 4)
        self.enforce(len(weights) == 4, "there are four weights", weights)
        boxes, images = self.array(0, None, None), self.array(2, None, 3)
        deltas = self.array(1, boxes.shape[0], None)
        sides = self.sides
        self.enforce(boxes.shape[1] in (sides, sides + 1), f"a box has {sides} numbers", boxes)
        self.enforce(deltas.shape[1] % sides == 0, f"there are {sides} deltas per class", deltas)
        counts = [boxes.shape[0]]
        if boxes.shape[1] == sides + 1:
            numbers = boxes[:, 0].astype(np.int64)
            inside = not numbers.size or 0 <= numbers.min() <= numbers.max() < len(images)
            self.enforce(inside, "the image indices of boxes are in range", images)
            counts = np.bincount(numbers, minlength=len(images)).tolist()
        self.enforce(
            len(counts) == len(images),
            "boxes of several images start with the image's number",
            images,
        )
        made = np.empty_like(deltas)
        start = 0
        for count, image in zip(counts, images, strict=True):
            rows = slice(start, start + count)
            made[rows] = self._of_image(boxes[rows, -sides:], deltas[rows], image, weights)
            start += count
        self.store(0, made, *deltas.shape)
        if self.OutputSize() > 1:
            self.store(1, counts, len(images))

    def _of_image(
        self,
        boxes: NDArray[np.float32],
        deltas: NDArray[np.float32],
        image: NDArray[np.float32],
        weights: Sequence[float],
    ) -> NDArray[np.float32]:
        scale = image[2]
        height, width = (int(side / scale + np.float32(0.5)) for side in image[:2])
        classes = deltas.shape[1] // self.sides
        boxes = boxes.copy()
        boxes[:, :4] /= scale  # but not the degrees
        every = np.repeat(boxes, classes, axis=0)
        moved = self.transformed(every, deltas.reshape(-1, self.sides), weights)
        moved = self.clipped(moved, height, width)
        if self.GetSingleArgument("apply_scale", True):
            moved[:, :4] *= scale
        return moved.reshape(deltas.shape)
