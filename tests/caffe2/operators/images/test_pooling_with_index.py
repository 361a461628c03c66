# SPDX-License-Identifier: Apache-2.0
"""Maxima with their places, which Caffe2 has for CUDA only."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize(("stride", "pad"), [(1, 0), (2, 1), (3, 0)])
def test_maxima_places_and_gradient_agree_with_torch(stride, pad):
    x = torch.randn(2, 3, 7, 9, generator=torch.Generator().manual_seed(0), requires_grad=True)
    workspace.FeedBlob("x", x.detach().numpy())
    net = core.Net("pool")
    net.MaxPoolWithIndex(["x"], ["y", "i"], kernel=3, stride=stride, pad=pad)
    gradient = net.AddGradientOperators(["y"])["x"]
    workspace.RunNetOnce(net)
    y, i = torch.nn.functional.max_pool2d(x, 3, stride, pad, return_indices=True)
    y.sum().backward()
    np.testing.assert_array_equal(workspace.FetchBlob("y"), y.detach())
    np.testing.assert_array_equal(workspace.FetchBlob("i"), i)
    assert workspace.FetchBlob("i").dtype == np.int32
    np.testing.assert_allclose(workspace.FetchBlob(str(gradient)), x.grad)
