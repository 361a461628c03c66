# SPDX-License-Identifier: Apache-2.0
"""ElementwiseLinear has the bits of Caffe2, which rounds the product before the sum."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize("again", [False, True])
def test_the_product_is_rounded_before_the_sum(again: bool) -> None:
    random = np.random.RandomState(0)
    x, a, b = (random.randn(*shape).astype(np.float32) for shape in ((40, 7), (7,), (7,)))
    for name, value in {"x": x, "a": a, "b": b}.items():
        workspace.FeedBlob(name, value)
    net = core.Net("linear")
    net.ElementwiseLinear(["x", "a", "b"], "y")
    workspace.CreateNet(net)
    workspace.RunNet(net, 2 if again else 1)  # into a new blob, and into one that is there
    np.testing.assert_array_equal(workspace.FetchBlob("y"), x * a + b)
