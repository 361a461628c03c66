# SPDX-License-Identifier: Apache-2.0
"""Boxes as arrays of rows (x1, y1, x2, y2): transformed, clipped, selected by overlap.

These are loops over small arrays, so they use NumPy on the memory of the blobs, which has less
overhead than torch.

Follows caffe2/operators/generate_proposals_op_util_boxes.h and _nms.h, PyTorch 1.8.1, also in the
order of operations, since rounding may decide which box is kept.
"""

from __future__ import annotations

import numpy as np

from bridge.caffe2.operators.boxes.rotated_boxes import LARGEST_GROWTH, RotatedOverlaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Boxes = NDArray[np.float32]

__all__ = ["by_score", "clipped", "kept", "kept_softly", "large_enough", "transformed"]


def transformed(boxes: Boxes, deltas: Boxes, weights: Sequence[float], plus_one: bool) -> Boxes:
    """Return boxes moved by (dx, dy) sides and resized by exp(dw), exp(dh).

    `deltas` (n, 4) is divided by `weights` (4).
    """
    one = np.float32(plus_one)
    sides = boxes[:, 2:] - boxes[:, :2] + one
    centers = boxes[:, :2] + np.float32(0.5) * sides
    by = np.asarray(weights, np.float32)
    centers = deltas[:, :2] / by[:2] * sides + centers
    sides = np.exp(np.minimum(deltas[:, 2:] / by[2:], LARGEST_GROWTH)) * sides
    half = np.float32(0.5) * sides
    return np.concatenate([centers - half, centers + half - one], axis=1)


def clipped(boxes: Boxes, height: int, width: int, plus_one: bool) -> Boxes:
    """Return boxes clipped to an image."""
    limits = np.array([width, height, width, height], np.float32) - np.float32(plus_one)
    found: Boxes = np.maximum(np.minimum(boxes, limits), np.float32(0))
    return found


def large_enough(
    boxes: Boxes, smallest: float, image: NDArray[np.float32], plus_one: bool
) -> NDArray[np.intp]:
    """Return the indices of boxes with sides of at least `smallest`, centered in the image.

    `image`: height, width, and the scale by which `smallest` is multiplied.
    """
    sides = boxes[:, 2:] - boxes[:, :2] + np.float32(plus_one)
    centers = boxes[:, :2] + sides / np.float32(2)
    fine = (sides >= smallest * float(image[2])) & (centers < image[1::-1])
    return np.flatnonzero(fine.all(axis=1))


def by_score(scores: NDArray[np.float32], most: int = -1) -> NDArray[np.intp]:
    """Return the indices of the scores in descending order, at most `most` if not negative."""
    order = np.argsort(-scores, kind="stable")
    return order if most < 0 else order[:most]


def _overlaps(boxes: Boxes, plus_one: bool) -> _Overlaps | RotatedOverlaps:
    """Return the overlaps of boxes, which are rotated if they have five columns."""
    return _Overlaps(boxes, plus_one) if boxes.shape[1] == 4 else RotatedOverlaps(boxes)


class _Overlaps:
    """Overlap of one box with others, as intersection over union."""

    def __init__(self, boxes: Boxes, plus_one: bool) -> None:
        self.one = np.float32(plus_one)
        self.boxes = np.ascontiguousarray(boxes.T)
        x1, y1, x2, y2 = self.boxes
        self.areas = (x2 - x1 + self.one) * (y2 - y1 + self.one)

    def of(self, i: int, others: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the overlaps of box `i` with the boxes `others`; NaN if both have no area."""
        x1, y1, x2, y2 = self.boxes[:, others]
        own = self.boxes[:, i]
        zero = np.float32(0)
        width = np.maximum(np.minimum(x2, own[2]) - np.maximum(x1, own[0]) + self.one, zero)
        height = np.maximum(np.minimum(y2, own[3]) - np.maximum(y1, own[1]) + self.one, zero)
        inter = width * height
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Boxes = inter / (self.areas[i] + self.areas[others] - inter)
        return found


def kept(
    boxes: Boxes, order: NDArray[np.intp], threshold: float, most: int, plus_one: bool
) -> list[int]:
    """Return the indices of boxes, in `order`, that overlap no earlier one more than `threshold`.

    At most `most` of them, unless it is negative.
    """
    overlaps = _overlaps(boxes, plus_one)
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
    method: str,
    plus_one: bool,
) -> tuple[list[int], NDArray[np.float32]]:
    """Return the indices of boxes by descending score, and the scores (soft NMS).

    In each step the box with the largest score is kept, and the scores of the others are multiplied
    by 1 - overlap if it is above `threshold` (`method` "linear"), or by exp(-overlap^2 / sigma)
    ("gaussian"). Boxes with scores below `smallest` are removed.
    """
    overlaps = _overlaps(boxes, plus_one)
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
        if method == "linear":
            factor = np.where(overlap > np.float32(threshold), 1.0 - overlap, 1.0)
        else:
            factor = np.exp(-1.0 * overlap.astype(np.float64) ** 2 / sigma)
        scores[rows] *= factor.astype(np.float32)
        rows = rows[scores[rows] >= np.float32(smallest)]
    return found, scores
