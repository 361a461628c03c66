# SPDX-License-Identifier: Apache-2.0
"""Boxes selected by our own kernels, held against loops over pairs of boxes."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.operators.boxes.box_kernels import best_of_classes


def boxes(count: int, classes: int = 1, seed: int = 0):
    random = np.random.RandomState(seed)
    low = random.uniform(0, 60, (count, classes, 2))
    high = low + random.uniform(1, 40, (count, classes, 2))
    return np.concatenate([low, high], axis=2).reshape(count, 4 * classes).astype(np.float32)


def overlap(a, b, one):
    """Return intersection over union of two boxes, in float32."""
    one, zero = np.float32(one), np.float32(0)
    x1, y1 = np.maximum(a[:2], b[:2])
    x2, y2 = np.minimum(a[2:], b[2:])
    both = max(x2 - x1 + one, zero) * max(y2 - y1 + one, zero)
    areas = [(box[2] - box[0] + one) * (box[3] - box[1] + one) for box in (a, b)]
    with np.errstate(invalid="ignore"):
        return both / (areas[0] + areas[1] - both)


def kept_by_pairs(found, order, threshold, one):
    chosen = []
    for row in order:
        if all(overlap(found[i], found[row], one) <= np.float32(threshold) for i in chosen):
            chosen.append(row)
    return chosen


def kept(found, order, threshold, most, plus_one):
    """Return the kept boxes of one class, whose scores descend in `order`."""
    scores = np.zeros((len(found), 1), np.float32)
    scores[order, 0] = np.arange(len(order), 0, -1)
    rows, counts = np.empty((1, len(found)), np.int64), np.empty(1, np.int64)
    best_of_classes(scores, found, 0, 0, 0.5, threshold, most, plus_one, rows, counts)
    return rows[0, : counts[0]].tolist()


@pytest.mark.parametrize("plus_one", [True, False])
@pytest.mark.parametrize("count", [0, 1, 15, 70, 200])
def test_non_maximum_suppression_keeps_the_boxes_of_a_loop_over_pairs(count, plus_one) -> None:
    found = boxes(count)
    order = np.random.RandomState(1).permutation(count)
    expected = kept_by_pairs(found, order, 0.3, plus_one)
    for most in (-1, 0, 5):
        rows = kept(found, order, 0.3, most, plus_one)
        assert rows == expected[: most if most > 0 else None]


def test_boxes_without_area_or_with_nan_are_not_kept_twice() -> None:
    found = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [2, np.nan, 3, 3], [5, 5, 6, 6]], np.float32)
    assert kept(found, np.arange(4), 0.5, -1, False) == [0, 3]


def best(scores, found_boxes, classes, first_box=0, softly=None):
    found = np.empty((classes, len(scores)), np.int64)
    counts = np.empty(classes, np.int64)
    best_of_classes(scores, found_boxes, 0, first_box, 0.2, 0.3, 0, True, found, counts, softly)
    return [found[j, :many].tolist() for j, many in enumerate(counts)]


def detected(scores, found_boxes, **arguments):
    """Return the outputs of BoxWithNMSLimit, whose class 0 is a background that is never kept."""
    background = np.zeros((len(scores), 1), np.float32)
    workspace.FeedBlob("scores", np.concatenate([background, scores], 1))
    if scores.shape[1] * 4 == found_boxes.shape[1] and found_boxes.shape[1] > 4:
        found_boxes = np.concatenate([found_boxes[:, :4], found_boxes], 1)
    workspace.FeedBlob("boxes", found_boxes)
    names = ["s", "b", "c", "number", "rows", "numbers"]
    arguments |= {"score_thresh": 0.2, "nms": 0.3}
    op = core.CreateOperator("BoxWithNMSLimit", ["scores", "boxes"], names, **arguments)
    workspace.RunOperatorOnce(op)
    return [workspace.FetchBlob(name) for name in names]


@pytest.mark.parametrize("first_box", [0, -1])
def test_the_best_boxes_of_each_class_are_selected(first_box) -> None:
    scores = np.random.RandomState(2).rand(30, 3).astype(np.float32)
    scores[5] = scores[7]  # equal ones stay in order
    many = boxes(30, 3)
    expected = []
    for j in range(3):
        own = many[:, :4] if first_box < 0 else many[:, 4 * j : 4 * j + 4]
        order = [i for i in np.argsort(-scores[:, j], kind="stable") if scores[i, j] > 0.2]
        expected.append(kept_by_pairs(own, order, 0.3, True))
    given = np.ascontiguousarray(many[:, :4]) if first_box < 0 else many
    assert best(scores, given, 3, first_box) == expected
    out = detected(scores, given, cls_agnostic_bbox_reg=first_box < 0)
    classes = np.repeat([1, 2, 3], [len(one) for one in expected])
    flat = [row for one in expected for row in one]
    np.testing.assert_array_equal(out[0], scores[flat, classes - 1])
    columns = classes - 1 if first_box == 0 else classes * 0
    np.testing.assert_array_equal(out[1], many.reshape(30, 3, 4)[flat, columns])
    np.testing.assert_array_equal(out[2], classes)
    np.testing.assert_array_equal(out[4], flat)


def test_limit_leaves_the_best_of_all_classes() -> None:
    scores = np.random.RandomState(3).rand(40, 4).astype(np.float32)
    rows = best(scores, boxes(40, 4), 4)
    pairs = [(scores[row, j], j, row) for j, one in enumerate(rows) for row in one]
    chosen = sorted(pairs, key=lambda pair: -pair[0])[:9]
    # The limit holds for each class too, which changes nothing here.
    *_, classes, _, limited, numbers = detected(scores, boxes(40, 4), detections_per_im=9)
    expected = [(j + 1, row) for j in range(4) for _, k, row in chosen if k == j]
    assert list(zip(classes.tolist(), limited.tolist(), strict=True)) == expected
    assert numbers[0, 1:].tolist() == [sum(k == j for _, k, _ in chosen) for j in range(4)]


@pytest.mark.parametrize("linear", [True, False])
def test_soft_suppression_lowers_scores_as_a_loop_over_pairs(linear) -> None:
    scores = np.random.RandomState(4).rand(25, 1).astype(np.float32)
    found, left = boxes(25), scores[:, 0].copy()
    rows = [i for i in range(25) if left[i] > 0.2]
    expected = []
    while rows:
        at = int(np.argmax(left[rows]))
        row = rows[at]
        expected.append(row)
        rows[at] = rows[0]
        rows = rows[1:]
        for other in rows:
            value = overlap(found[row], found[other], True)
            factor = 1 - value if value > np.float32(0.3) else 1.0
            if not linear:
                factor = np.exp(-(np.float64(value) ** 2) / 0.5)
            left[other] *= np.float32(factor)
        rows = [other for other in rows if left[other] >= np.float32(0.1)]
    lowered = scores.copy()
    assert best(lowered, found, 1, softly=(linear, 0.5, 0.1)) == [expected]
    np.testing.assert_allclose(lowered[:, 0], left, rtol=1e-6)


def test_no_boxes_give_no_results() -> None:
    nothing = np.empty((0, 2), np.float32), np.empty((0, 8), np.float32)
    assert best(*nothing, 2) == [[], []]
    assert [len(one) for one in detected(*nothing)] == [0, 0, 0, 1, 0, 1]
