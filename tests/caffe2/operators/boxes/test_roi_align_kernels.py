# SPDX-License-Identifier: Apache-2.0
"""RoIAlign by our own kernel, held against sample after sample."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bridge.caffe2.operators.boxes.roi_align_kernels import roi_align

X = np.random.RandomState(0).randn(2, 3, 6, 8).astype(np.float32)
REGIONS = np.array(
    [
        [0, 4, 4, 40, 30],
        [1, 0, 0, 63, 47],
        [1, 20, 10, 21, 11],  # less than a pixel
        [0, -20, -20, 90, 70],  # over the edges
        [1, 200, 200, 240, 240],  # outside
        [0, 59, 43, 63, 47],
    ],
    np.float32,
)


def value(image, y, x):
    """Return a bilinear sample of an image (H, W)."""
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = max(y, 0.0), max(x, 0.0)
    top, left = min(int(y), height - 1), min(int(x), width - 1)
    low, right = min(top + 1, height - 1), min(left + 1, width - 1)
    dy = y - top if top < height - 1 else 0.0
    dx = x - left if left < width - 1 else 0.0
    upper = image[top, left] * (1 - dx) + image[top, right] * dx
    lower = image[low, left] * (1 - dx) + image[low, right] * dx
    return upper * (1 - dy) + lower * dy


def by_samples(x, regions, bins, scale, ratio, aligned):
    y = np.zeros((len(regions), x.shape[1], *bins), np.float32)
    offset = 0.5 if aligned else 0.0
    for n, (number, *sides) in enumerate(regions):
        left, top, right, low = np.array(sides, np.float64) * scale - offset
        size = [low - top, right - left]
        if not aligned:
            size = [max(one, 1.0) for one in size]
        steps = [one / many for one, many in zip(size, bins, strict=True)]
        grid = [ratio if ratio > 0 else math.ceil(step) for step in steps]
        for channel, i, j in np.ndindex(x.shape[1], *bins):
            total = 0.0
            for k, m in np.ndindex(*grid):
                place = top + (i + (k + 0.5) / grid[0]) * steps[0]
                across = left + (j + (m + 0.5) / grid[1]) * steps[1]
                total += value(x[int(number), channel], place, across)
            y[n, channel, i, j] = total / max(grid[0] * grid[1], 1)
    return y


def by_kernel(x, regions, bins, scale, ratio, aligned):
    x, regions = torch.from_numpy(x), torch.from_numpy(regions)
    y = torch.full((len(regions), x.shape[1], *bins), np.nan)
    sizes = len(x), *regions.shape, *x.shape[1:]
    roi_align(x, regions, y, *sizes, *bins, scale, ratio, aligned)
    return y.numpy()


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [0, 1, 3])
@pytest.mark.parametrize("bins", [(1, 1), (3, 2), (7, 7)])
def test_roi_align_averages_its_samples(bins, ratio, aligned) -> None:
    expected = by_samples(X, REGIONS, bins, 0.125, ratio, aligned)
    actual = by_kernel(X, REGIONS, bins, 0.125, ratio, aligned)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_regions_without_a_number_are_of_the_first_image() -> None:
    regions = np.ascontiguousarray(REGIONS[:, 1:])
    numbered = np.concatenate([np.zeros((6, 1), np.float32), regions], 1)
    expected = by_kernel(X, numbered, (2, 2), 0.125, 0, False)
    np.testing.assert_array_equal(by_kernel(X, regions, (2, 2), 0.125, 0, False), expected)


def test_nan_and_infinite_regions_are_zero() -> None:
    regions = np.array([[0, np.nan, 0, 8, 8], [0, 0, 0, np.inf, 8]], np.float32)
    assert not by_kernel(X, regions, (2, 2), 0.125, 0, False).any()


def test_no_regions_give_no_rows() -> None:
    assert by_kernel(X, REGIONS[:0], (2, 2), 0.125, 0, False).shape == (0, 3, 2, 2)
