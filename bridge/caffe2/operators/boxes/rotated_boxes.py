# SPDX-License-Identifier: Apache-2.0
"""Rotated boxes as arrays of rows (x, y, width, height, degrees): transformed, clipped, overlaps.

x and y are the center, degrees are counterclockwise. These are loops over small arrays, so they use
NumPy, which has less overhead than torch.

Follows caffe2/operators/generate_proposals_op_util_boxes.h and _nms.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.caffe2.operators.boxes.box_rules import LARGEST_GROWTH

Boxes = NDArray[np.float32]
Points = NDArray[np.float64]

_PARALLEL = 1e-14  # sides are parallel if their cross product is at most this


def transformed(
    boxes: Boxes, deltas: Boxes, weights: Sequence[float], bounds: tuple[int, int] | None
) -> Boxes:
    """Return boxes moved, resized and turned by (dx, dy, dw, dh, da).

    The deltas are in sides of the box, as logarithms, and in radians; `weights` divides the first
    four. Degrees outside `bounds` are changed by one period.
    """
    by = np.asarray(weights, np.float32)
    centers = deltas[:, :2] / by[:2] * boxes[:, 2:4] + boxes[:, :2]
    sides = np.exp(np.minimum(deltas[:, 2:4] / by[2:4], np.float32(LARGEST_GROWTH))) * boxes[:, 2:4]
    turned = deltas[:, 4] * np.float32(180) / np.float32(math.pi) + boxes[:, 4]
    if bounds is not None:
        low, high = bounds
        period = np.float32(high - low)
        turned = np.where(
            turned < low, turned + period, np.where(turned > high, turned - period, turned)
        )
    return np.concatenate([centers, sides, turned[:, None]], axis=1)


def clipped(boxes: Boxes, size: Boxes, threshold: float, plus_one: bool) -> Boxes:
    """Return boxes with those turned by at most `threshold` degrees clipped to their images.

    size: width and height of the image (2) or of the image of each box (n, 2), which are truncated.
    """
    one = np.float32(plus_one)
    upright = np.abs(boxes[:, 4]) <= np.float32(threshold)
    half = (boxes[:, 2:4] - one) / 2
    limits = np.trunc(size) - one
    low = np.maximum(np.minimum(boxes[:, :2] - half, limits), np.float32(0))
    high = np.maximum(np.minimum(boxes[:, :2] + half, limits), np.float32(0))
    inside = np.concatenate([(low + high) / 2, high - low + one, boxes[:, 4:]], axis=1)
    return np.where(upright[:, None], inside, boxes)


def large_enough(boxes: Boxes, smallest: float, image: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the indices of boxes with sides of at least `smallest` and a center in the image.

    `image`: height, width, and the scale by which `smallest` is multiplied. A center left of the
    image or above it counts as inside, as in Caffe2.
    """
    fine = (boxes[:, 2:4] >= smallest * float(image[2])) & (boxes[:, :2] < image[1::-1])
    return np.flatnonzero(fine.all(axis=1))


def _cross(a: Points, b: Points) -> Points:
    return a[..., 0] * b[..., 1] - b[..., 0] * a[..., 1]


def _inside(points: Points, boxes: Points) -> NDArray[np.bool_]:
    """Return which points (..., n, 2) lie in the rectangles (..., 4, 2)."""
    corner = boxes[..., :1, :]
    first, last = boxes[..., 1:2, :] - corner, boxes[..., 3:4, :] - corner
    away = points - corner
    fine = np.ones(away.shape[:-1], np.bool_)
    for side in (first, last):
        along = (away * side).sum(-1)
        fine &= (along >= 0) & (along <= (side * side).sum(-1))
    return fine


class RotatedOverlaps:
    """Overlap of one rotated box with others, as intersection over union."""

    def __init__(self, boxes: Boxes) -> None:
        self.areas = boxes[:, 2] * boxes[:, 3]
        angles = np.deg2rad(-boxes[:, 4].astype(np.float64))
        cos, sin = np.cos(angles) / 2, np.sin(angles) / 2
        x, y, width, height = boxes[:, :4].astype(np.float64).T
        ax, ay = -sin * height - cos * width, cos * height - sin * width
        bx, by = sin * height - cos * width, -cos * height - sin * width
        around = [[ax, ay], [bx, by], [-ax, -ay], [-bx, -by]]
        self.corners = np.array(around).transpose(2, 0, 1) + np.stack([x, y], 1)[:, None]

    def of(self, i: int, others: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the overlaps of box `i` with the boxes `others`; NaN if both have no area."""
        inter = self._intersections(self.corners[i], self.corners[others]).astype(np.float32)
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Boxes = inter / (self.areas[i] + self.areas[others] - inter)
        return found

    def _intersections(self, own: Points, others: Points) -> Points:
        """Return the areas of the intersections of a rectangle (4, 2) with others (n, 4, 2)."""
        n = len(others)
        owns = np.broadcast_to(own, others.shape)
        sides, other_sides = np.roll(own, -1, 0) - own, np.roll(others, -1, 1) - others
        between = others[:, None] - own[:, None]  # (n, own, other, 2)
        a, b = sides[None, :, None], other_sides[:, None]
        determinant = _cross(b, a)
        crossing = np.abs(determinant) > _PARALLEL
        divisor = np.where(crossing, determinant, 1.0)
        t, u = _cross(b, between) / divisor, _cross(a, between) / divisor
        crossing &= (t >= 0) & (t <= 1) & (u >= 0) & (u <= 1)
        crossings = own[:, None] + t[..., None] * a
        points = np.concatenate([crossings.reshape(n, 16, 2), owns, others], axis=1)
        valid = np.concatenate(
            [crossing.reshape(n, 16), _inside(owns, others), _inside(others, owns)], axis=1
        )
        return _areas(points, valid)


def _areas(points: Points, valid: NDArray[np.bool_]) -> Points:
    """Return the areas of convex polygons whose corners are the valid points, in any order."""
    count = valid.sum(1)
    some = np.take_along_axis(points, valid.argmax(1)[:, None, None], 1)
    points = np.where(valid[..., None], points, some)
    middle = (points * valid[..., None]).sum(1, keepdims=True) / np.maximum(count, 1)[:, None, None]
    away = points - middle
    order = np.argsort(np.arctan2(away[..., 1], away[..., 0]), axis=1)
    around = np.take_along_axis(away, order[..., None], 1)
    area = np.abs(_cross(around, np.roll(around, -1, 1)).sum(1)) / 2
    return np.where(count > 2, area, 0.0)


def kept(boxes: Boxes, order: NDArray[np.intp], threshold: float, most: int) -> list[int]:
    """Return the indices of boxes, in `order`, that overlap no earlier one more than `threshold`.

    At most `most` of them, unless it is negative.
    """
    overlaps = RotatedOverlaps(boxes)
    limit = np.float32(threshold)
    found: list[int] = []
    while order.size and (most < 0 or len(found) < most):
        first, order = int(order[0]), order[1:]
        found.append(first)
        order = order[overlaps.of(first, order) <= limit]
    return found


def kept_softly(
    boxes: Boxes,
    scores: NDArray[np.float32],
    rows: NDArray[np.intp],
    sigma: float,
    threshold: float,
    smallest: float,
    linear: bool,
) -> tuple[list[int], NDArray[np.float32]]:
    """Return the indices of boxes by descending score, and the scores (soft NMS).

    In each step the box with the largest score is kept, and the scores of the others are multiplied
    by 1 - overlap if it is above `threshold` (`linear`), or else by exp(-overlap^2 / sigma). Boxes
    with scores below `smallest` are removed.
    """
    overlaps = RotatedOverlaps(boxes)
    scores = scores.copy()
    found: list[int] = []
    while rows.size:
        at = int(np.argmax(scores[rows]))
        first = int(rows[at])
        found.append(first)
        # The first one moves to the place of the largest: this decides among equal scores.
        rows = rows.copy()
        rows[at] = rows[0]
        rows = rows[1:]
        overlap = overlaps.of(first, rows)
        if linear:
            factor = np.where(overlap > np.float32(threshold), 1.0 - overlap, 1.0)
        else:
            factor = np.exp(-1.0 * overlap.astype(np.float64) ** 2 / sigma)
        scores[rows] *= factor.astype(np.float32)
        rows = rows[scores[rows] >= np.float32(smallest)]
    return found, scores
