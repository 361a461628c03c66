# SPDX-License-Identifier: Apache-2.0
"""The scales of resized images may change from run to run."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize("kind", ["ResizeNearest", "UpsampleBilinear"])
def test_other_scales_of_the_same_image(kind: str) -> None:
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
