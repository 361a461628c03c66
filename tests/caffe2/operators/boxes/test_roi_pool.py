# SPDX-License-Identifier: Apache-2.0
"""The gradients of regions that Caffe2 computes on CUDA only."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize(
    ("op_type", "rois", "outputs"),
    [
        ("RoIPool", [[0, 0, 0, 5, 5], [1, 2, 1, 7, 6]], ["y", "places"]),
        ("RoIPoolF", [[0, 0, 0, 5, 5], [1, 2, 1, 7, 6]], ["y", "places"]),
        ("RoIAlignRotated", [[0, 3, 3, 4, 5, 30], [1, 4, 3, 3, 3, -60]], ["y"]),
    ],
)
def test_gradients_agree_with_differences(op_type, rois, outputs):
    x = np.random.RandomState(0).permutation(2 * 3 * 8 * 9).reshape(2, 3, 8, 9)
    workspace.FeedBlob("x", (x / 100).astype(np.float32))
    workspace.FeedBlob("rois", np.array(rois, np.float32))
    net = core.Net("regions")
    net.Proto().op.extend(
        [core.CreateOperator(op_type, ["x", "rois"], outputs, pooled_h=2, pooled_w=3)]
    )
    gradient = net.AddGradientOperators(["y"])["x"]
    workspace.RunNetOnce(net)
    found = workspace.FetchBlob(str(gradient))
    assert found.any()
    for place in [(0, 1, 2, 3), (1, 0, 4, 5), (1, 2, 3, 3)]:
        sums = []
        for step in (0.002, -0.002):
            moved = (x / 100).astype(np.float32)
            moved[place] += step
            workspace.FeedBlob("x", moved)
            workspace.RunOperatorOnce(net.Proto().op[0])
            sums.append(workspace.FetchBlob("y").astype(np.float64).sum())
        assert found[place] == pytest.approx((sums[0] - sums[1]) / 0.004, abs=0.01)


def test_roi_pool_f_of_detectron_equals_roi_pool():
    workspace.FeedBlob("x", np.random.RandomState(0).randn(2, 3, 8, 9).astype(np.float32))
    workspace.FeedBlob("rois", np.float32([[0, 0, 0, 5, 5], [1, 2, 1, 7, 6], [1, 30, 30, 9, 9]]))
    for op_type, outputs in (("RoIPool", ["a", "b"]), ("RoIPoolF", ["c", "d"])):
        op = core.CreateOperator(op_type, ["x", "rois"], outputs, pooled_h=2, pooled_w=3)
        workspace.RunOperatorOnce(op)
    np.testing.assert_array_equal(workspace.FetchBlob("a"), workspace.FetchBlob("c"))
    np.testing.assert_array_equal(workspace.FetchBlob("b"), workspace.FetchBlob("d"))
