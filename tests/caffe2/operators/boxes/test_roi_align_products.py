# SPDX-License-Identifier: Apache-2.0
"""RoIAlign in exported modules: products of matrices, against the operator itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

# x1, y1, x2, y2: within the image, of no size, across its edges, beyond it, larger than it.
REGIONS = [
    (1, 2, 9, 7),
    (0, 0, 11, 8),
    (3.3, 4.7, 3.3, 4.7),
    (-4, -3, 5, 6),
    (8, 5, 30, 40),
    (50, 60, 70, 80),
    (-20, -30, 60, 70),
    (2.5, 1.25, 2.75, 8),
]


CASES = [
    *((images, ratio, False, "NCHW") for images in (1, 2) for ratio in (0, 1, 3)),
    *((1, ratio, True, "NCHW") for ratio in (0, 2)),
    (2, 0, False, "NHWC"),
]


@pytest.mark.parametrize(("images", "ratio", "aligned", "order"), CASES)
def test_an_exported_module_agrees_with_the_operator(
    images: int, ratio: int, aligned: bool, order: str
) -> None:
    random = np.random.RandomState(0)
    x = random.randn(images, 3, 9, 12).astype(np.float32)
    rois = np.array([(i % images, *one) for i, one in enumerate(REGIONS)], np.float32)
    if order == "NHWC":
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    net = core.Net("head")
    arguments = {"pooled_h": 3, "pooled_w": 2, "spatial_scale": 0.75, "sampling_ratio": ratio}
    net.RoIAlign(["x", "rois"], "regions", order=order, aligned=aligned, **arguments)
    net.Relu("regions", "y")
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("rois", rois)
    workspace.RunNetOnce(net)
    module = caffe2.to_module(net, inputs=["x", "rois"], outputs=["y"])
    inputs = torch.from_numpy(x), torch.from_numpy(rois)
    exported = torch.export.export(module, inputs).module()
    other = rois[::-1].copy()
    for given in (rois, other):
        workspace.FeedBlob("rois", given)
        workspace.RunNetOnce(net)
        found = exported(inputs[0], torch.from_numpy(given))
        np.testing.assert_allclose(found.numpy(), workspace.FetchBlob("y"), rtol=1e-5, atol=1e-5)
