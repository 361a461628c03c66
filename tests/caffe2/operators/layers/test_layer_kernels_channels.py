# SPDX-License-Identifier: Apache-2.0
"""Sums over channels and planes by our own kernels, held against torch in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from bridge.caffe2.operators.layers.layer_kernels import moments, normalize

SHAPES = [(1, 1, 1), (2, 3, 7), (3, 8, 130), (1, 5, 1100), (2, 40, 64)]


def image(shape, mean=0.0):
    return torch.from_numpy(np.random.RandomState(0).randn(*shape) + mean).float()


@pytest.mark.parametrize("mean", [0.0, 1000.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_moments_agree_with_torch(shape, mean) -> None:
    x = image(shape, mean)
    found, variance = torch.empty(shape[1]), torch.empty(shape[1])
    moments(x, found, variance, *shape)
    expected, center = torch.var_mean(x.double(), [0, 2], correction=0)
    torch.testing.assert_close(found.double(), center, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(variance.double(), expected, rtol=1e-5, atol=1e-6)


def test_moments_are_nan_for_channels_with_nan() -> None:
    x = image((2, 3, 7))
    x[1, 1, 3] = float("nan")
    found, variance = torch.empty(3), torch.empty(3)
    moments(x, found, variance, 2, 3, 7)
    assert found.isnan().tolist() == variance.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_normalize_agrees_with_torch(shape, in_place) -> None:
    x = image(shape)
    parameters = [torch.linspace(low, 2, shape[1]) for low in (-1.0, 0.5, -2.0, 0.1)]
    expected = functional.batch_norm(
        x.double(),
        *(one.double() for one in parameters[2:]),
        *(one.double() for one in parameters[:2]),
        eps=0.01,
    )
    y = x if in_place else torch.full(shape, np.nan)
    assert normalize(x, y, *parameters, 0.01, *shape) is y
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-5)
