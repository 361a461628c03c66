# SPDX-License-Identifier: Apache-2.0
"""Operators without elements where the real Caffe2 ends the process."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize("sizes", [(0, 3, 2, 2), (2, 3, 0), (2, 0, 4)])
def test_instance_norm_of_nothing_has_zero_mean(sizes: tuple[int, ...]) -> None:
    workspace.FeedBlob("x", np.zeros(sizes, np.float32))
    workspace.FeedBlob("scale", np.ones(sizes[1], np.float32))
    op = core.CreateOperator("InstanceNorm", ["x", "scale", "scale"], ["y", "mean", "rstd"])
    workspace.RunOperatorOnce(op)
    assert workspace.FetchBlob("y").shape == sizes
    for name in ("mean", "rstd"):
        np.testing.assert_array_equal(workspace.FetchBlob(name), np.zeros(sizes[:2], np.float32))


def test_images_without_channels_are_joined_from_blocks() -> None:
    workspace.FeedBlob("x", np.zeros((4, 0, 2, 3), np.float32))
    workspace.RunOperatorOnce(core.CreateOperator("BatchToSpace", ["x"], ["y"], block_size=2))
    assert workspace.FetchBlob("y").shape == (1, 0, 4, 6)
