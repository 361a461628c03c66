# SPDX-License-Identifier: Apache-2.0
"""Runs of operators that are functions: the first, with buffers, recorded, and repeated ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_every_run_computes_under_another_default_device() -> None:
    net = core.Net("relu")
    net.Negative("x", "y")
    net.Relu("y", "y")
    x = np.array([-1, 2, -3], np.float32)
    workspace.FeedBlob("x", x)
    workspace.CreateNet(net)
    with torch.device("meta"):
        for _ in range(5):
            workspace.RunNet(net)
            np.testing.assert_array_equal(workspace.FetchBlob("y"), [1, 0, 3])
