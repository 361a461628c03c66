# SPDX-License-Identifier: Apache-2.0
"""GenerateProposals and BBoxTransform: boxes proposed from anchors, and refined by deltas.

Upright boxes are the matter of our own kernels, rotated ones of NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import require, single
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.boxes import rotated_boxes as rotated
from bridge.caffe2.operators.boxes.box_kernels import count_boxes, propose, transform_boxes
from bridge.caffe2.operators.boxes.box_rules import (
    LARGEST_GROWTH,
    BoxRules,
    array_of,
    by_score,
    tensor_of,
)


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
    boxes = rotated.clipped(moved, image[1::-1], rules.clip_angle, rules.plus_one)
    rows = rotated.large_enough(boxes, smallest, image)
    keep = rotated.kept(boxes, rows, threshold, after if 0 < after < rows.size else -1)
    return boxes[keep], scores[keep]


@operator("BBoxTransform", outputs="1-2", gradient="undefined", effects=("errors",))
def bbox_transform(
    rois: Tensor,
    deltas: Tensor,
    im_info: Tensor,
    *,
    rules: BoxRules,
    weights: list[float] = [1.0, 1.0, 1.0, 1.0],  # noqa: B006
    apply_scale: bool = True,
    out: Out = None,
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
    given = rois, deltas, im_info
    matrices = all(one.dim() == 2 for one in given) and im_info.shape[1] == 3
    require(matrices, "boxes and deltas are matrices, and images have three numbers", *given)
    sides, count = rules.sides, im_info.shape[0]
    n, columns = rois.shape
    require(columns in (sides, sides + 1), f"a box has {sides} numbers", rois)
    fits = deltas.shape[0] == n and deltas.shape[1] % sides == 0
    require(fits, f"there are {sides} deltas per box and class", rois, deltas)
    numbered = columns > sides
    several = "boxes of several images start with the image's number"
    require(numbered or count == 1, several, im_info)
    made, counts = out if isinstance(out, tuple) else (out, None)
    if not takes_kernels(*given):
        made = counts = None
        arrays = [array_of("inputs", one, None, None) for one in given]
        rois, deltas, im_info = map(torch.from_numpy, arrays)
    counts = im_info.new_empty(count) if counts is None else counts
    counts = run_kernel(count_boxes, counts, rois, n, columns, count, numbered)
    if sides == 4:
        made = torch.empty_like(deltas) if made is None else made
        how = weights, LARGEST_GROWTH, apply_scale, rules.plus_one
        sizes = n, columns, deltas.shape[1], count
        made = run_kernel(transform_boxes, made, counts, rois, deltas, im_info, *sizes, *how)
    else:
        own = im_info.repeat_interleave(counts.long(), 0).numpy()
        boxes, by = rois[:, -5:].numpy(), deltas.numpy()
        made = torch.from_numpy(_turned(boxes, by, weights, own, apply_scale, rules))
    device = given[0].device
    return (made, counts) if given[0].is_cpu else (made.to(device), counts.to(device))


def _turned(
    boxes: NDArray[np.float32],
    deltas: NDArray[np.float32],
    weights: Sequence[float],
    images: NDArray[np.float32],
    apply_scale: bool,
    rules: BoxRules,
) -> NDArray[np.float32]:
    """Return rotated boxes, each with its image, moved by the deltas of each class."""
    classes = deltas.shape[1] // 5
    every, images = np.repeat(boxes, classes, axis=0), np.repeat(images, classes, axis=0)
    scale = images[:, 2:]
    every[:, :4] /= scale  # but not the degrees
    moved = rotated.transformed(every, deltas.reshape(-1, 5), weights, rules.angle_bounds())
    size = images[:, 1::-1] / scale + np.float32(0.5)
    moved = rotated.clipped(moved, size, rules.clip_angle, rules.plus_one)
    if apply_scale:
        moved[:, :4] *= scale
    return moved.reshape(deltas.shape)
