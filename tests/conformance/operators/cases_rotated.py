# SPDX-License-Identifier: Apache-2.0
"""Rotated boxes: moved, proposed, chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, case

_random = np.random.RandomState(31)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def scores(*shape: int) -> np.ndarray:
    """Scores of which no two are the same."""
    count = int(np.prod(shape))
    return (_random.permutation(count) / count).reshape(shape).astype(np.float32)


def boxes(count: int, classes: int = 1) -> np.ndarray:
    centers = _random.uniform(0, 60, (count, classes, 2))
    sides = _random.uniform(5, 40, (count, classes, 2))
    angles = _random.uniform(-90, 90, (count, classes, 1))
    found = np.concatenate([centers, sides, angles], axis=2)
    return found.reshape(count, -1).astype(np.float32)


def array(*rows: Any) -> np.ndarray:
    return np.array(rows, np.float32)


PAGE = array([100, 90, 1])
ANCHORS = array([0, 0, 16, 16, 0], [0, 0, 32, 16, 30], [0, 0, 16, 32, -60])
NEAR = np.tile(array([0, 0, 0, 0, 0], [1, 2, 0, 0, 0]), (6, 1))
ALIKE = np.repeat(boxes(3), 4, axis=0) + NEAR
NUMBERS = array([0], [0], [0], [1], [1])


def moved(name: str, *inputs: np.ndarray, **args: Any) -> Case:
    return case(name, "BBoxTransform", *inputs, outputs=2, rotated=True, **args)


def proposed(name: str, images: int, info: np.ndarray, **args: Any) -> Case:
    given = scores(images, 3, 4, 5), 0.3 * values(images, 15, 4, 5), info, ANCHORS
    return case(name, "GenerateProposals", *given, outputs=2, **args)


def chosen(name: str, classes: int, count: int, **args: Any) -> Case:
    given = scores(count, classes), boxes(count, classes)
    return case(name, "BoxWithNMSLimit", *given, outputs=6, rotated=True, **args)


CASES = [
    moved("simple", boxes(5), 0.3 * values(5, 10), PAGE),
    moved("scaled", boxes(5), 0.3 * values(5, 10), array([100, 90, 2.0])),
    moved("back", boxes(5), values(5, 5), array([100, 90, 2]), apply_scale=False),
    moved("bounds", boxes(5), 3 * values(5, 5), PAGE, angle_bound_lo=0, angle_bound_hi=180),
    moved("unbound", boxes(5), 3 * values(5, 5), PAGE, angle_bound_on=False),
    moved("period", boxes(5), values(5, 5), PAGE, angle_bound_hi=80),
    moved("clipped", boxes(5), values(5, 5), PAGE, clip_angle_thresh=60.0),
    moved("less", boxes(5), values(5, 5), PAGE, clip_angle_thresh=60.0, legacy_plus_one=0),
    moved("not clipped", boxes(5), values(5, 5), PAGE, clip_angle_thresh=-1.0),
    moved("none", boxes(5)[:0], values(0, 5), PAGE),
    moved("of two", np.hstack([NUMBERS, boxes(5)]), values(5, 5), np.repeat(PAGE, 2, axis=0)),
    moved("upright", boxes(5)[:, :4], values(5, 5), PAGE),
    proposed("simple", 1, PAGE),
    proposed("few", 2, array([100, 90, 1], [50, 60, 2]), post_nms_topN=5),
    proposed("small", 1, PAGE, min_size=0.0, nms_thresh=0.5),
    chosen("simple", 3, 20),
    chosen("much", 2, 40, nms=0.7, score_thresh=0.0),
    chosen("softly", 3, 20, soft_nms_enabled=True),
    chosen("normally", 2, 20, soft_nms_enabled=True, soft_nms_method="gaussian"),
    case(
        "alike",
        "BoxWithNMSLimit",
        scores(12, 2),
        np.concatenate([ALIKE, ALIKE], axis=1),
        outputs=3,
        rotated=True,
    ),
]
