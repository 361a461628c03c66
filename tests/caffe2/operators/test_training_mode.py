# SPDX-License-Identifier: Apache-2.0
"""Dropout in training: what no recording can hold, since it is random."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def drop(ratio: float, seed: int, outputs: tuple[str, str] = ("y", "mask")) -> None:
    torch.manual_seed(seed)
    workspace.RunOperatorOnce(
        core.CreateOperator("Dropout", ["x"], list(outputs), ratio=ratio, is_test=0)
    )


@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.9])
def test_dropout_keeps_the_elements_of_its_mask_and_scales_them(ratio: float) -> None:
    x = np.random.RandomState(0).randn(100, 100).astype(np.float32)
    workspace.FeedBlob("x", x)
    drop(ratio, 1)
    y, mask = workspace.FetchBlob("y"), workspace.FetchBlob("mask")
    assert mask.dtype == np.bool_
    assert abs(mask.mean() - (1 - ratio)) < 0.02
    np.testing.assert_allclose(y, x * mask / (1 - ratio), rtol=1e-6)


def test_dropout_is_repeatable_and_not_the_same_each_time() -> None:
    workspace.FeedBlob("x", np.ones(1000, np.float32))
    masks = []
    for seed in (1, 1, 2):
        drop(0.5, seed)
        masks.append(workspace.FetchBlob("mask"))
    np.testing.assert_array_equal(masks[0], masks[1])
    assert (masks[0] != masks[2]).any()


def test_dropout_in_place_is_seen_by_who_shares_the_memory() -> None:
    shared = torch.ones(1000)
    workspace.FeedBlob("x", shared)
    drop(0.5, 3, ("x", "mask"))
    np.testing.assert_array_equal(shared.numpy(), 2.0 * workspace.FetchBlob("mask"))


def test_the_gradient_goes_where_elements_were_kept() -> None:
    workspace.FeedBlob("x", np.ones(50, np.float32))
    drop(0.5, 4)
    workspace.RunOperatorOnce(
        core.CreateOperator("DropoutGrad", ["x", "mask"], ["dx"], ratio=0.5, is_test=0)
    )
    np.testing.assert_array_equal(workspace.FetchBlob("dx"), workspace.FetchBlob("y"))
