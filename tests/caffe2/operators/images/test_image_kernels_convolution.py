# SPDX-License-Identifier: Apache-2.0
"""Convolutions of small images by our own kernel give what torch gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.operators.images.image_kernels import convolve


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(
    ("sizes", "kernel", "pads"),
    [
        ((1, 4, 8, 8), (3, 3), (1, 1, 1, 1)),
        ((2, 2, 5, 7), (1, 1), (0, 0, 0, 0)),
        ((1, 6, 4, 9), (2, 5), (0, 2, 1, 2)),
        ((2, 2, 3, 3), (3, 3), (2, 2, 2, 2)),
        ((1, 2, 1, 1), (3, 1), (1, 0, 1, 0)),
        ((1, 2, 6, 6), (3, 3), (0, 0, 0, 0)),
        ((1, 2, 1, 2), (1, 1), (3, 4, 0, 1)),
    ],
)
def test_convolve_agrees_with_torch(sizes, kernel, pads, group, has_bias) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(sizes, generator=generator)
    w = torch.randn(4, sizes[1] // group, *kernel, generator=generator)
    bias = torch.randn(4, generator=generator) if has_bias else None
    top, left, bottom, right = pads
    padded = torch.nn.functional.pad(x, (left, right, top, bottom))
    expected = torch.conv2d(padded, w, bias, groups=group)
    y = torch.full(expected.shape, float("nan"))
    shape = (*sizes, 4, group, *kernel, top, left, *expected.shape[2:])
    assert convolve(x, y, w, bias, *shape) is y
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)


def test_other_numbers_of_elements_are_refused() -> None:
    x = torch.ones(1, 1, 2, 2)
    with pytest.raises(EnforceNotMet, match="was to have 5 elements"):
        convolve(x, x, x, torch.ones(1), 1, 1, 1, 5, 1, 1, 1, 1, 0, 0, 1, 5)


@pytest.mark.usefixtures("fresh_workspace")
@pytest.mark.parametrize("pads", [(-1, -1, -1, -1), (-1, 0, 2, 1), (2, 2, -3, -3), (0, 0, -2, -1)])
def test_negative_pads_cut_the_image(pads: tuple[int, int, int, int]) -> None:
    top, left, bottom, right = pads
    random = np.random.RandomState(0)
    x = random.randn(1, 2, 5, 5).astype(np.float32)
    w = random.randn(3, 2, 2, 2).astype(np.float32)
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("w", w)
    workspace.RunOperatorOnce(
        core.CreateOperator("Conv", ["x", "w"], ["y"], kernels=[2, 2], pads=list(pads))
    )
    padded = torch.nn.functional.pad(torch.from_numpy(x), (left, right, top, bottom))
    expected = torch.conv2d(padded, torch.from_numpy(w)).numpy()
    np.testing.assert_allclose(workspace.FetchBlob("y"), expected, rtol=1e-5, atol=1e-5)
