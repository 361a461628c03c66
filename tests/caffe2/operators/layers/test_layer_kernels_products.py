# SPDX-License-Identifier: Apache-2.0
"""Products of small matrices by our own kernel, held against torch in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bridge.caffe2.operators.layers.layer_kernels import fully_connected


@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [(16, 16, 16), (1, 64, 16), (0, 3, 4), (3, 0, 4), (2, 3, 0), (5, 130, 70), (2, 7, 65)],
)
def test_fully_connected_agrees_with_torch(rows, depth, columns) -> None:
    random = np.random.RandomState(0)
    x, w, b = (
        torch.from_numpy(random.randn(*shape)).float()
        for shape in ((rows, depth), (columns, depth), (columns,))
    )
    y = torch.full((rows, columns), np.nan)
    found = fully_connected(x, w, b, y, rows, depth, columns)
    assert found is y
    expected = torch.addmm(b.double(), x.double(), w.double().t())
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-5)


def test_a_bias_is_added_last_as_in_caffe2() -> None:
    random = np.random.RandomState(0)
    x, w, b = (random.randn(*shape).astype(np.float32) for shape in ((4, 2), (3, 2), (3,)))
    y = torch.empty(4, 3)
    fully_connected(*map(torch.from_numpy, (x, w, b)), y, 4, 2, 3)
    expected = x[:, :1] * w[:, 0] + x[:, 1:] * w[:, 1] + b  # each step rounded
    assert torch.equal(y, torch.from_numpy(expected))
