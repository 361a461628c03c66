# SPDX-License-Identifier: Apache-2.0
"""GenerateProposals and BBoxTransform: boxes proposed from anchors, and refined by deltas.

Upright boxes are the matter of our own kernels, rotated ones of NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import require, single
from bridge.caffe2.operators.boxes import rotated_boxes as rotated
from bridge.caffe2.operators.boxes.box_rules import (
    LARGEST_GROWTH,
    BoxRules,
    array_of,
    by_score,
    tensor_of,
)
from bridge.caffe2.operators.boxes.proposal_kernels import propose, transform_boxes


@operator("GenerateProposalsCPP", gradient="undefined", effects=("values",))
@operator("GenerateProposals", gradient="undefined", effects=("values",))
def generate_proposals(
    scores: Tensor,
    bbox_deltas: Tensor,
    im_info: Tensor,
    anchors: Tensor,
    *,
    rules: BoxRules,
    spatial_scale: float = 1.0 / 16,
    pre_nms_topN: int = 6000,
    post_nms_topN: int = 300,
    nms_thresh: float = 0.7,
    min_size: float = 16.0,
) -> tuple[Tensor, Tensor]:
    """Propose boxes (n, 5) and their scores (n) from the scores of shifted anchors.

    Inputs: scores (N, A, H, W), deltas (N, 4 A, H, W), images (N, 3) as height, width and scale,
    anchors (A, 4). Each box is preceded by the index of its image. Anchors with five columns are
    rotated; the 4 and 5 above are then 5 and 6. Anchors are shifted to each place, moved by the
    deltas and clipped. Of the `pre_nms_topN` best, those are kept that are large enough
    (`min_size`) and overlap no better one by more than `nms_thresh`, at most `post_nms_topN`. A
    place is 1 / `spatial_scale` pixels wide. Of equal scores the earlier ranks first.

    Raises EnforceNotMet: sizes do not match.
    Follows GenerateProposalsOp, caffe2/operators/generate_proposals_op.cc, PyTorch 1.8.1.
    """
    given = array_of("scores", scores, None, None, None, None)
    images = array_of("images", im_info, None, 3)
    n, count, height, width = given.shape
    shapes = array_of("anchors", anchors, count, None)
    sides = shapes.shape[1]
    require(sides in (4, 5), "an anchor has four or five numbers", shapes)
    deltas = array_of("deltas", bbox_deltas, n, sides * count, height, width)
    require(images.shape[0] == n, "there is one image per row of scores", images)
    places = count * height * width
    room = min(post_nms_topN, places) if post_nms_topN > 0 else places
    boxes, found = np.empty((n * room, 1 + sides), np.float32), np.empty(n * room, np.float32)
    stride = single(1.0 / single(spatial_scale))
    total = 0
    for i in range(n):
        rest = boxes[total:], found[total:]
        chosen = (pre_nms_topN, post_nms_topN, min_size, nms_thresh)
        if sides == 4:
            image = (given[i], deltas[i], images[i], shapes, stride)
            total += propose(*image, *chosen, LARGEST_GROWTH, rules.plus_one, float(i), *rest)
            continue
        kept, values = _rotated(
            given[i].reshape(-1), deltas[i], images[i], shapes, stride, chosen, rules
        )
        end = total + len(kept)
        boxes[total:end, 0], boxes[total:end, 1:], found[total:end] = i, kept, values
        total = end
    return tensor_of(boxes[:total], scores), tensor_of(found[:total], scores)


def _rotated(
    scores: NDArray[np.float32],
    deltas: NDArray[np.float32],
    image: NDArray[np.float32],
    anchors: NDArray[np.float32],
    stride: float,
    chosen: tuple[int, int, float, float],
    rules: BoxRules,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the rotated boxes of an image (n, 5) and their scores (n)."""
    before, after, smallest, threshold = chosen
    _, height, width = deltas.shape
    order = by_score(scores, before if 0 < before < scores.size else -1)
    scores = scores[order]
    which, place = np.divmod(order, height * width)
    up, across = np.divmod(place, width)
    shift = np.zeros((len(order), 5), np.float32)
    shift[:, 0], shift[:, 1] = across, up
    by = deltas.reshape(-1, 5, height * width)[which, :, place]
    moved = anchors[which] + shift * np.float32(stride)
    moved = rotated.transformed(moved, by, (1, 1, 1, 1), rules.angle_bounds())
    size = int(image[0]), int(image[1])
    boxes = rotated.clipped(moved, *size, rules.clip_angle, rules.plus_one)
    rows = rotated.large_enough(boxes, smallest, image)
    keep = rotated.kept(boxes, rows, threshold, after if 0 < after < rows.size else -1)
    return boxes[keep], scores[keep]


@operator("BBoxTransform", outputs="1-2", gradient="undefined", effects=("values",))
def bbox_transform(
    rois: Tensor,
    deltas: Tensor,
    im_info: Tensor,
    *,
    rules: BoxRules,
    weights: list[float] = [1.0, 1.0, 1.0, 1.0],  # noqa: B006
    apply_scale: bool = True,
) -> tuple[Tensor, Tensor]:
    """Transform boxes (n, 4) by deltas (n, 4 classes) -> the boxes of each class (n, 4 classes).

    Inputs: boxes, also rotated (n, 5), deltas, images (N, 3). Boxes of several images are preceded
    by the index of the image, in ascending order; a second output is the number of boxes of each
    image (N). `weights`: the deltas are divided by them. `apply_scale`: the results are boxes of
    the scaled image.
    Raises EnforceNotMet: sizes do not match.
    Follows BBoxTransformOp, caffe2/operators/bbox_transform_op.cc, PyTorch 1.8.1.
    """
    require(len(weights) == 4, "there are four weights", weights)
    boxes, images = array_of("boxes", rois, None, None), array_of("images", im_info, None, 3)
    by = array_of("deltas", deltas, boxes.shape[0], None)
    sides = rules.sides
    require(boxes.shape[1] in (sides, sides + 1), f"a box has {sides} numbers", boxes)
    require(by.shape[1] % sides == 0, f"there are {sides} deltas per class", by)
    counts = [boxes.shape[0]]
    if boxes.shape[1] == sides + 1:
        numbers = boxes[:, 0].astype(np.int64)
        inside = not numbers.size or 0 <= numbers.min() <= numbers.max() < len(images)
        require(inside, "the image indices of boxes are in range", images)
        counts = np.bincount(numbers, minlength=len(images)).tolist()
    require(
        len(counts) == len(images), "boxes of several images start with the image's number", images
    )
    made = np.empty_like(by)
    start = 0
    for count, image in zip(counts, images, strict=True):
        rows = slice(start, start + count)
        own, scale = boxes[rows, -sides:], image[2]
        height, width = (int(side / scale + np.float32(0.5)) for side in image[:2])
        if sides == 4:
            given = own, by[rows], np.asarray(weights, np.float32), float(scale), height, width
            how = LARGEST_GROWTH, apply_scale, rules.plus_one
            transform_boxes(*given, *how, made[rows])
        else:
            made[rows] = _turned(own, by[rows], weights, scale, (height, width), apply_scale, rules)
        start += count
    return tensor_of(made, rois), tensor_of(np.array(counts, np.float32), rois)


def _turned(
    boxes: NDArray[np.float32],
    deltas: NDArray[np.float32],
    weights: Sequence[float],
    scale: np.float32,
    size: tuple[int, int],
    apply_scale: bool,
    rules: BoxRules,
) -> NDArray[np.float32]:
    """Return the rotated boxes of an image, moved by the deltas of each class."""
    every = np.repeat(boxes, deltas.shape[1] // 5, axis=0)
    every[:, :4] /= scale  # but not the degrees
    moved = rotated.transformed(every, deltas.reshape(-1, 5), weights, rules.angle_bounds())
    moved = rotated.clipped(moved, *size, rules.clip_angle, rules.plus_one)
    if apply_scale:
        moved[:, :4] *= scale
    return moved.reshape(deltas.shape)
