# SPDX-License-Identifier: Apache-2.0
"""Pooling by our own kernels gives what torch's give, windows over the edges included."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from bridge.caffe2.operators.images.image_kernels import average_pool, max_pool, max_pool_gradient

# Per dimension: size, kernel, stride, padding before and after.
WINDOWS = [
    ((7, 3, 2, 1, 1), (9, 3, 2, 0, 0)),
    ((8, 2, 2, 0, 0), (6, 2, 2, 0, 0)),
    ((5, 3, 1, 1, 1), (13, 3, 1, 1, 1)),
    ((6, 5, 3, 2, 2), (7, 4, 3, 1, 2)),
    ((6, 3, 2, 0, 1), (6, 3, 2, 0, 1)),
    ((9, 2, 4, 0, 0), (9, 1, 3, 0, 0)),
    ((7, 7, 1, 0, 0), (7, 7, 1, 0, 0)),
    ((7, 7, 1, 0, 1), (7, 7, 1, 0, 1)),
    ((3, 5, 1, 1, 1), (3, 5, 1, 1, 1)),
    ((4, 3, 1, 2, 2), (5, 2, 1, 1, 1)),
    ((5, 3, 2, 1, -1), (5, 3, 2, 1, -1)),
]


def case(height, width):
    """Return an image, the padding for torch, and the dimensions for the kernels."""
    x = torch.from_numpy(np.random.RandomState(0).randn(2, 3, height[0], width[0])).float()
    pads = (*width[3:], *height[3:])
    dimensions = []
    for size, kernel, stride, head, tail in (height, width):
        out = (size + head + tail - kernel) // stride + 1
        dimensions.append((size, out, kernel, stride, head))
    return x, pads, dimensions


def pooled(kernel, x, dimensions, *args):
    y = torch.full((*x.shape[:2], dimensions[0][1], dimensions[1][1]), np.nan)
    kernel(x, y, 6, *dimensions, *args)
    return y


@pytest.mark.parametrize(("height", "width"), WINDOWS)
def test_max_pool_agrees_with_torch(height, width) -> None:
    x, pads, dimensions = case(height, width)
    padded = functional.pad(x, pads, value=-np.inf)
    expected = functional.max_pool2d(padded, (height[1], width[1]), (height[2], width[2]))
    assert torch.equal(pooled(max_pool, x, dimensions), expected)


@pytest.mark.parametrize(("height", "width"), WINDOWS)
def test_gradient_of_max_is_whole_for_each_of_equal_maxima(height, width) -> None:
    x, pads, dimensions = case(height, width)
    x = x.round()  # which makes equal ones
    y = pooled(max_pool, x, dimensions)
    dy = torch.from_numpy(np.random.RandomState(1).randn(*y.shape)).float()
    dx = torch.full_like(x, np.nan)
    max_pool_gradient(x, y, dy, dx, 6, *dimensions)

    padded = functional.pad(x, pads, value=-np.inf).double()
    expected = torch.zeros_like(padded)
    for i in range(y.shape[2]):
        for j in range(y.shape[3]):
            rows = slice(i * height[2], i * height[2] + height[1])
            columns = slice(j * width[2], j * width[2] + width[1])
            chosen = padded[:, :, rows, columns] == y[:, :, i, j, None, None]
            expected[:, :, rows, columns] += chosen * dy[:, :, i, j, None, None]
    top, left = height[3], width[3]
    expected = functional.pad(expected, (0, max(0, -pads[1]), 0, max(0, -pads[3])))
    expected = expected[:, :, top : top + x.shape[2], left : left + x.shape[3]]
    torch.testing.assert_close(dx, expected.float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("height", "width"), WINDOWS)
def test_average_pool_agrees_with_torch(height, width, whole) -> None:
    x, pads, dimensions = case(height, width)
    sizes = (height[1], width[1]), (height[2], width[2])
    expected = functional.avg_pool2d(functional.pad(x, pads), *sizes)
    if not whole:
        expected /= functional.avg_pool2d(functional.pad(torch.ones_like(x), pads), *sizes)
    torch.testing.assert_close(
        pooled(average_pool, x, dimensions, whole), expected, rtol=1e-5, atol=1e-6
    )


def test_max_pool_passes_infinities_and_nan_as_torch() -> None:
    x, _, dimensions = case((7, 3, 2, 0, 0), (9, 3, 2, 0, 0))
    x[0, 0, 3, 4] = float("nan")
    x[0, 1] = -float("inf")
    x[1, 2, 0, 0] = float("inf")
    expected = functional.max_pool2d(x, 3, 2)
    torch.testing.assert_close(
        pooled(max_pool, x, dimensions), expected, rtol=0, atol=0, equal_nan=True
    )


def test_pooling_no_planes_touches_nothing() -> None:
    x = torch.empty(0)
    max_pool(x, x, 0, (4, 2, 2, 2, 0), (4, 2, 2, 2, 0))
    average_pool(x, x, 0, (4, 2, 2, 2, 0), (4, 2, 2, 2, 0), True)
