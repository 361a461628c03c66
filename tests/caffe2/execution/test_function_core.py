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


@pytest.mark.parametrize("once", [False, True])
def test_two_blobs_that_are_fed_one_tensor_and_then_another(once: bool) -> None:
    net = core.Net("product")
    net.Mul(["a", "b"], "c")
    tensor = torch.ones(3)
    workspace.FeedBlob("a", tensor)
    workspace.FeedBlob("b", tensor)
    workspace.CreateNet(net)

    def check(expected: float) -> None:
        if once:
            workspace.RunOperatorOnce(net.Proto().op[0])
        else:
            workspace.RunNet(net)
        np.testing.assert_array_equal(workspace.FetchBlob("c"), [expected] * 3)

    for _ in range(5):
        check(1)
    workspace.FeedBlob("b", torch.full((3,), 5.0))
    check(5)
    workspace.FeedBlob("a", torch.full((3,), 7.0))
    check(35)
