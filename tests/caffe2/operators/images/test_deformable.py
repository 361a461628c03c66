# SPDX-License-Identifier: Apache-2.0
"""Deformable convolutions, which Caffe2 has for CUDA only."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def feed(offset, group=1, deformable=1):
    random = np.random.RandomState(0)
    x = random.randn(2, 4, 6, 7).astype(np.float32)
    w = random.randn(6, 4 // group, 3, 3).astype(np.float32)
    for name, value in {"x": x, "w": w, "b": random.randn(6).astype(np.float32)}.items():
        workspace.FeedBlob(name, value)
    workspace.FeedBlob("offset", np.asarray(offset((2, deformable * 18, 6, 7)), np.float32))
    return {"group": group, "deformable_group": deformable, "kernel": 3, "pad": 1}


@pytest.mark.parametrize(("group", "deformable"), [(1, 1), (2, 1), (1, 2), (2, 4)])
def test_without_offsets_it_is_a_convolution(group, deformable):
    arguments = feed(np.zeros, group, deformable)
    workspace.RunOperatorOnce(
        core.CreateOperator("DeformConv", ["x", "offset", "w", "b"], ["y"], **arguments)
    )
    del arguments["deformable_group"]
    workspace.RunOperatorOnce(core.CreateOperator("Conv", ["x", "w", "b"], ["z"], **arguments))
    np.testing.assert_allclose(workspace.FetchBlob("y"), workspace.FetchBlob("z"), atol=1e-5)


def test_whole_offsets_shift_the_image_and_halves_take_means():
    arguments = feed(np.zeros)
    x = workspace.FetchBlob("x")
    for name, shift, seen in [
        ("one", 1.0, np.pad(x[:, :, 1:], ((0, 0), (0, 0), (0, 1), (0, 0)))),
        ("half", 0.5, None),
    ]:
        offset = np.zeros((2, 9, 2, 6, 7), np.float32)
        offset[:, :, 0] = shift
        workspace.FeedBlob("offset", offset.reshape(2, 18, 6, 7))
        workspace.RunOperatorOnce(
            core.CreateOperator("DeformConv", ["x", "offset", "w", "b"], [name], **arguments)
        )
        if seen is None:
            seen = (x + np.concatenate([x[:, :, 1:], x[:, :, -1:]], 2)) / 2
        workspace.FeedBlob("seen", seen)
        plain = {"kernel": 3, "pad": 1}
        workspace.RunOperatorOnce(core.CreateOperator("Conv", ["seen", "w", "b"], ["z"], **plain))
        # Rows whose windows are inside of the image before and after the shift.
        np.testing.assert_allclose(
            workspace.FetchBlob(name)[:, :, 1:4], workspace.FetchBlob("z")[:, :, 1:4], atol=1e-5
        )


def test_gradients_agree_with_differences():
    random = np.random.RandomState(1)
    arguments = feed(lambda size: 0.4 + 0.2 * random.rand(*size), 1, 2)
    net = core.Net("deform")
    net.Proto().op.extend(
        [core.CreateOperator("DeformConv", ["x", "offset", "w", "b"], ["y"], **arguments)]
    )
    gradients = net.AddGradientOperators(["y"])
    workspace.RunNetOnce(net)
    for name in ("x", "offset", "w", "b"):
        value = workspace.FetchBlob(name)
        found = workspace.FetchBlob(str(gradients[name]))
        sums = []
        place = tuple(size // 2 for size in value.shape)
        for step in (0.01, -0.01):
            moved = value.copy()
            moved[place] += step
            workspace.FeedBlob(name, moved)
            workspace.RunOperatorOnce(net.Proto().op[0])
            sums.append(workspace.FetchBlob("y").astype(np.float64).sum())
        workspace.FeedBlob(name, value)
        assert found[place] == pytest.approx((sums[0] - sums[1]) / 0.02, rel=0.02, abs=0.02)
