# SPDX-License-Identifier: Apache-2.0
"""PSRoIPool, which Caffe2 computes on CUDA only, against loops over bins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")

ROIS = [[0, 1, 2, 9, 13], [1, -8, 3, 4, 30], [1, 40, 40, 44, 44], [0, 5, 5, 2, 2]]
ARGS = {"spatial_scale": 0.5, "group_size": 3, "output_dim": 2}


def expected(x: np.ndarray) -> np.ndarray:
    made = np.zeros((len(ROIS), 2, 3, 3))
    for r, (image, *box) in enumerate(ROIS):
        low = [box[1] * 0.5, box[0] * 0.5]
        side = [max((box[3] + 1) * 0.5 - low[0], 0.1), max((box[2] + 1) * 0.5 - low[1], 0.1)]
        for c, *bin_ in np.ndindex(2, 3, 3):
            ends = []
            for d, size in enumerate(x.shape[2:]):
                step = side[d] / 3
                first = math.floor(bin_[d] * step + low[d])
                last = math.ceil((bin_[d] + 1) * step + low[d])
                ends.append(slice(min(max(first, 0), size), min(max(last, 0), size)))
            part = x[image, (c * 3 + bin_[0]) * 3 + bin_[1], ends[0], ends[1]]
            made[r, c, bin_[0], bin_[1]] = part.mean() if part.size else 0
    return made


def test_means_of_bins_and_their_gradients() -> None:
    x = np.random.RandomState(1).randn(2, 18, 8, 9).astype(np.float32)
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("rois", np.float32(ROIS))
    net = core.Net("regions")
    net.Proto().op.extend([core.CreateOperator("PSRoIPool", ["x", "rois"], ["y", "c"], **ARGS)])
    gradient = str(net.AddGradientOperators(["y"])["x"])
    workspace.CreateNet(net)
    for _ in range(3):  # the first, the recorded and the repeated run
        workspace.RunNet(net.Name())
    made = workspace.FetchBlob("y")
    np.testing.assert_allclose(made, expected(x), rtol=1e-5, atol=1e-6)
    assert not made[2].any(), "its bins are outside of the image"
    channels = np.broadcast_to(np.arange(18, dtype=np.int32).reshape(2, 3, 3), made.shape)
    np.testing.assert_array_equal(workspace.FetchBlob("c"), channels)
    found = workspace.FetchBlob(gradient)
    for place in [(0, 4, 3, 2), (1, 17, 6, 1), (0, 0, 1, 0), (1, 9, 4, 4)]:
        moved = x.astype(np.float64)
        moved[place] += 1
        difference = expected(moved).sum() - expected(x.astype(np.float64)).sum()
        assert found[place] == pytest.approx(difference, abs=1e-5)


@pytest.mark.parametrize("args", [{"group_size": 2}, {"output_dim": 3}, {"spatial_scale": -1.0}])
def test_arguments_that_do_not_fit_are_refused(args: dict[str, float]) -> None:
    workspace.FeedBlob("x", np.zeros((2, 18, 8, 9), np.float32))
    workspace.FeedBlob("rois", np.float32(ROIS))
    op = core.CreateOperator("PSRoIPool", ["x", "rois"], ["y", "c"], **{**ARGS, **args})
    with pytest.raises(RuntimeError, match="requires"):
        workspace.RunOperatorOnce(op)
