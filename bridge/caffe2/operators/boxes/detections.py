# SPDX-License-Identifier: Apache-2.0
"""BoxWithNMSLimit: the best boxes of each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.boxes import rotated_boxes as rotated
from bridge.caffe2.operators.boxes.box_kernels import best_of_classes
from bridge.caffe2.operators.boxes.box_rules import BoxRules, array_of, by_score, tensor_of


class NMSRules:
    """Which boxes BoxWithNMSLimit keeps; see there.

    Raises EnforceNotMet: there is no such method.
    """

    takes = (
        f"{BoxRules.takes}, str soft_nms_method, bool input_boxes_include_bg_cls, "
        "bool cls_agnostic_bbox_reg, bool output_classes_include_bg_cls, "
        "int detections_per_im, float nms, float score_thresh, bool soft_nms_enabled, "
        "float soft_nms_sigma, float soft_nms_min_score_thres"
    )

    def __init__(self, arguments: Arguments) -> None:
        method = arguments.single("soft_nms_method", "linear")
        require(method in ("linear", "gaussian"), "soft_nms_method is linear or gaussian", method)
        self.rules = BoxRules(arguments)
        self.background = int(bool(arguments.single("input_boxes_include_bg_cls", True)))
        agnostic = bool(arguments.single("cls_agnostic_bbox_reg", False))
        self.first_box = -1 if agnostic else self.background
        self.first_class = int(bool(arguments.single("output_classes_include_bg_cls", True)))
        self.limit = arguments.single("detections_per_im", 100)
        self.threshold = arguments.single("nms", 0.3)
        self.smallest = arguments.single("score_thresh", 0.05)
        self.softly: tuple[bool, float, float] | None = None
        if arguments.single("soft_nms_enabled", False):
            sigma = arguments.single("soft_nms_sigma", 0.5)
            least = arguments.single("soft_nms_min_score_thres", 0.001)
            self.softly = (method == "linear", sigma, least)


@operator(
    "BoxWithNMSLimit",
    outputs="3-6",
    gradient="undefined",
    types={"batch_splits": (c10.float32, c10.int32)},
    effects=("values",),
)
def box_with_nms_limit(
    scores: Tensor, boxes: Tensor, batch_splits: Tensor | None = None, *, rules: NMSRules
) -> tuple[Tensor, ...]:
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
    all_scores, all_boxes = _matrix(scores), _matrix(boxes)
    n, classes = all_scores.shape
    sides = rules.rules.sides
    require(all_boxes.shape[0] == n, "there is one box per score", boxes, scores)
    own = 1 if rules.first_box < 0 else classes - (not rules.background)
    require(all_boxes.shape[1] == sides * own, "there is one box per class", boxes, scores)
    counts = [n] if batch_splits is None else batch_splits.int().tolist()
    fits = sum(counts) == n and min(counts, default=0) >= 0
    require(fits, "the numbers of boxes per image add up to all boxes", counts, boxes)
    by_class = np.zeros((len(counts), classes), np.int32)
    found: list[tuple[NDArray[Any], ...]] = [_empty(sides)]
    start = 0
    for image, count in enumerate(counts):
        part = slice(start, start + count)
        start += count
        found.append(_of_image(all_scores[part], all_boxes[part], rules, by_class[image, 1:]))
    *kept, rows = map(np.concatenate, zip(*found, strict=True))
    columns = *kept, by_class.sum(1).astype(np.float32), rows, by_class
    return tuple(tensor_of(column, scores) for column in columns)


def _empty(sides: int) -> tuple[NDArray[Any], ...]:
    """Return scores, boxes, classes and rows of no box."""
    none = np.empty(0, np.float32)
    return none, np.empty((0, sides), np.float32), none, np.empty(0, np.int32)


def _matrix(x: Tensor) -> NDArray[np.float32]:
    flat = x.dim() == 2 or (x.dim() == 4 and x.shape[2] == x.shape[3] == 1)
    require(flat, "scores and boxes are matrices", x)
    return array_of("scores and boxes", x.view(x.shape[:2]), None, None)


def _of_image(
    scores: NDArray[np.float32],
    boxes: NDArray[np.float32],
    rules: NMSRules,
    counts: NDArray[np.int32],
) -> tuple[NDArray[Any], ...]:
    """Return the kept scores, boxes and classes of an image, and their rows; set `counts`."""
    n, sides, several = len(scores), rules.rules.sides, rules.first_box >= 0
    if rules.softly:
        scores = scores.copy()
    found, numbers = np.empty((len(counts), n), np.int64), np.empty(len(counts), np.int64)
    if sides == 5:
        _rotated(scores, boxes, rules, found, numbers)
    else:
        best_of_classes(
            *(scores, boxes, rules.background, rules.first_box, rules.smallest, rules.threshold),
            *(rules.limit, rules.rules.plus_one, found, numbers, rules.softly),
        )
    rows = found[np.arange(n) < numbers[:, None]]
    kinds = np.repeat(np.arange(len(counts)), numbers)
    values = scores[rows, kinds + rules.background]
    if 0 < rules.limit < len(rows):
        best = by_score(values, rules.limit)
        best = best[np.argsort(kinds[best], kind="stable")]
        rows, kinds, values = rows[best], kinds[best], values[best]
    counts[:] = np.bincount(kinds, minlength=len(counts))
    by_class = boxes.reshape(n, boxes.shape[1] // sides, sides)
    own = by_class[rows, kinds + rules.first_box if several else 0]
    return values, own, (kinds + rules.first_class).astype(np.float32), rows.astype(np.int32)


def _rotated(
    scores: NDArray[np.float32],
    boxes: NDArray[np.float32],
    rules: NMSRules,
    found: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """As `best_of_classes`, for rotated boxes."""
    for j in range(len(found)):
        column = scores[:, j + rules.background]
        rows = np.flatnonzero(column > np.float32(rules.smallest))
        first = 0 if rules.first_box < 0 else 5 * (j + rules.first_box)
        own = boxes[:, first : first + 5]
        if rules.softly:
            linear, sigma, least = rules.softly
            keep, column[:] = rotated.kept_softly(
                own, column, rows, sigma, rules.threshold, least, linear
            )
        else:
            order = rows[by_score(column[rows])]
            keep = rotated.kept(own, order, rules.threshold, rules.limit or -1)
        counts[j] = len(keep)
        found[j, : len(keep)] = keep
