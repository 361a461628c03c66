# SPDX-License-Identifier: Apache-2.0
"""The scales of resized images may change from run to run."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize("kind", ["ResizeNearest", "UpsampleBilinear"])
def test_a_net_follows_other_scales_of_the_same_image(kind: str) -> None:
    net = core.Net("resized")
    y = getattr(net, kind)(["x", "scales"], "y")
    net.AddGradientOperators([y])
    workspace.FeedBlob("x", np.ones((1, 1, 4, 4), np.float32))
    workspace.FeedBlob("scales", np.array([2, 2], np.float32))
    workspace.CreateNet(net)
    for scale in (2, 2, 2, 3, 1, 4):
        workspace.FeedBlob("scales", np.array([scale, scale], np.float32))
        workspace.RunNet(net.Name())
        assert workspace.FetchBlob("y").shape == (1, 1, 4 * scale, 4 * scale)
        assert workspace.FetchBlob("x_grad").sum() == pytest.approx(16 * scale * scale)


@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (3, 4, 5)])
def test_the_gradient_of_repeated_elements_is_their_sum(sizes: tuple[int, ...]) -> None:
    """Caffe2 computes it on CUDA only."""
    x = np.random.RandomState(0).randn(*sizes).astype(np.float32)
    workspace.FeedBlob("x", x)
    net = core.Net("repeated")
    net.AddExternalInput("dy")
    y = net.UpsampleNearest(["x"], "y", scale=3)
    gradient = str(net.AddGradientOperators({y: "dy"})["x"])
    dy = np.random.RandomState(1).randn(*sizes[:-2], 12, 15).astype(np.float32)
    workspace.FeedBlob("dy", dy)
    workspace.CreateNet(net)
    for _ in range(3):
        workspace.RunNet(net.Name())
        assert (workspace.FetchBlob("y") == x.repeat(3, -1).repeat(3, -2)).all()
        wanted = sum(dy[..., i::3, j::3] for i in range(3) for j in range(3))
        np.testing.assert_allclose(workspace.FetchBlob(gradient), wanted, rtol=1e-5, atol=1e-6)
