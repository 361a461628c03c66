# SPDX-License-Identifier: Apache-2.0
"""Softmax by our own kernel, held against torch."""

from __future__ import annotations

import pytest
import torch

from bridge.caffe2.operators.layers.layer_kernels import softmax


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (5, 10), (2, 33)])
def test_softmax_agrees_with_torch(shape, in_place) -> None:
    x = torch.linspace(-90, 90, shape[0] * shape[1]).reshape(shape).sin() * 50
    expected = torch.softmax(x.double(), 1)
    y = x if in_place else torch.empty(shape)
    softmax(x, y, *shape)
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-30)


def test_softmax_of_infinities_and_nan_agrees_with_torch() -> None:
    inf = float("inf")
    x = torch.tensor([[1, -inf, 2], [-inf, -inf, -inf], [inf, 0, 1], [0, float("nan"), 1]])
    y = torch.empty_like(x)
    softmax(x, y, *x.shape)
    torch.testing.assert_close(y, torch.softmax(x, 1), equal_nan=True)
