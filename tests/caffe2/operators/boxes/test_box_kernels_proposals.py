# SPDX-License-Identifier: Apache-2.0
"""Boxes proposed by our own kernel, held against NumPy on whole arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bridge
from bridge.caffe2.operators.boxes.box_kernels import (
    best_of_classes,
    count_boxes,
    propose,
    transform_boxes,
)

GROWTH = float(np.log(np.float32(1000 / 16)))
IMAGE = np.array([48, 70, 1.5], np.float32)
ANCHORS = np.array([[-8, -8, 8, 8], [-16, -8, 16, 8], [-8, -16, 8, 16]], np.float32)


def inputs():
    random = np.random.RandomState(0)
    scores = (random.permutation(60) / 60).reshape(3, 4, 5).astype(np.float32)
    scores[1, 1, 1] = scores[0, 2, 2]  # the earlier one ranks first
    deltas = random.randn(12, 4, 5).astype(np.float32)
    deltas[2, 0, 0] = 9  # grows no more than GROWTH says
    return scores, deltas


def by_numpy(scores, deltas, before, after, smallest, plus_one):
    order = np.argsort(-scores.ravel(), kind="stable")[: before or None]
    which, place = np.divmod(order, 20)
    up, across = np.divmod(place, 5)
    shift = np.stack([across, up, across, up], 1).astype(np.float32) * 16
    anchors = ANCHORS[which] + shift
    by = deltas.reshape(3, 4, 20)[which, :, place]
    one = np.float32(plus_one)
    sides = anchors[:, 2:] - anchors[:, :2] + one
    centers = by[:, :2] * sides + (anchors[:, :2] + np.float32(0.5) * sides)
    half = np.float32(0.5) * (np.exp(np.minimum(by[:, 2:], np.float32(GROWTH))) * sides)
    found = np.concatenate([centers - half, centers + half - one], 1)
    limits = np.array([70, 48, 70, 48], np.float32) - one
    found = np.maximum(np.minimum(found, limits), np.float32(0))
    sides = found[:, 2:] - found[:, :2] + one
    fine = (sides >= smallest * 1.5) & (found[:, :2] + sides / 2 < [70, 48])
    rows = np.flatnonzero(fine.all(1))
    ranks = np.zeros((len(found), 1), np.float32)
    ranks[rows, 0] = np.arange(len(rows), 0, -1)
    kept, counts = np.empty((1, len(found)), np.int64), np.empty(1, np.int64)
    best_of_classes(ranks, found, 0, 0, 0.5, 0.6, after, plus_one, kept, counts)
    total = counts[0]
    rows = kept[0, :total]
    return found[rows], scores.ravel()[order][rows]


@pytest.mark.parametrize("plus_one", [True, False])
@pytest.mark.parametrize(
    ("before", "after", "smallest"), [(0, 0, 0), (20, 0, 4), (0, 5, 2), (100, 100, 4), (0, 0, 500)]
)
def test_propose_selects_the_boxes_that_numpy_selects(before, after, smallest, plus_one) -> None:
    scores, deltas = inputs()
    out = np.empty((60, 5), np.float32), np.empty(60, np.float32)
    count = propose(
        *(scores, deltas, IMAGE, ANCHORS, 16.0, before, after),
        *(smallest, 0.6, GROWTH, plus_one, 7.0, *out),
    )
    boxes, expected = by_numpy(scores, deltas, before, after, smallest, plus_one)
    assert count == len(boxes)
    np.testing.assert_allclose(out[0][:count, 1:], boxes, rtol=1e-5)
    np.testing.assert_array_equal(out[0][:count, 0], 7)
    np.testing.assert_array_equal(out[1][:count], expected)


def test_images_without_anchors_propose_nothing() -> None:
    scores, deltas = np.empty((3, 0, 5), np.float32), np.empty((12, 0, 5), np.float32)
    out = np.empty((0, 5), np.float32), np.empty(0, np.float32)
    assert propose(scores, deltas, IMAGE, ANCHORS, 16, 0, 0, 0, 0.5, 4, True, 0, *out) == 0


def test_nan_is_not_proposed() -> None:
    scores, deltas = inputs()
    deltas[:] = np.nan
    out = np.empty((60, 5), np.float32), np.empty(60, np.float32)
    assert propose(scores, deltas, IMAGE, ANCHORS, 16, 0, 0, 0, 0.5, 4, True, 0, *out) == 0


@pytest.mark.parametrize("plus_one", [True, False])
@pytest.mark.parametrize("apply_scale", [True, False])
def test_transform_boxes_agrees_with_numpy(apply_scale, plus_one) -> None:
    random = np.random.RandomState(1)
    low = random.uniform(0, 60, (6, 2))
    numbered = np.concatenate([np.zeros((6, 1)), low, low + random.uniform(1, 40, (6, 2))], 1)
    numbered[4:, 0] = 2
    numbered = numbered.astype(np.float32)
    deltas = random.randn(6, 12).astype(np.float32)
    deltas[0, 2] = 50
    weights = [10.0, 5.0, 2.0, 1.0]
    images = np.array([[60, 75, 1.5], [1, 1, 1], [80, 100, 2]], np.float32)
    scale = images[[0, 0, 0, 0, 2, 2], 2:].repeat(3, 0)
    one = np.float32(plus_one)
    old = np.repeat(numbered[:, 1:], 3, 0) / scale
    by = deltas.reshape(-1, 4) / np.array(weights, np.float32)
    sides = old[:, 2:] - old[:, :2] + one
    centers = by[:, :2] * sides + (old[:, :2] + sides / 2)
    half = np.exp(np.minimum(by[:, 2:], np.float32(GROWTH))) * sides / 2
    expected = np.concatenate([centers - half, centers + half - one], 1)
    limits = np.array([50, 40, 50, 40], np.float32) - one
    expected = np.maximum(np.minimum(expected, limits), 0) * (scale if apply_scale else 1)
    boxes, by, images, counts = map(torch.from_numpy, (numbered, deltas, images, np.ones(3, "f")))
    assert count_boxes(counts, boxes, 6, 5, 3, True).tolist() == [4, 0, 2]
    how = weights, GROWTH, apply_scale, plus_one
    made = transform_boxes(torch.empty(6, 12), counts, boxes, by, images, 6, 5, 12, 3, *how)
    np.testing.assert_allclose(made, expected.reshape(6, 12), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("number", [-1.0, 2.0, float("nan")])
def test_count_boxes_refuses_the_index_of_no_image(number) -> None:
    boxes, counts = torch.zeros(3, 5), torch.ones(2)
    boxes[2, 0] = number
    with pytest.raises(bridge.c10.EnforceNotMet, match=r"from 0 to below 2; got .* for box 2"):
        count_boxes(counts, boxes, 3, 5, 2, True)
    assert counts.tolist() == [1, 1]
