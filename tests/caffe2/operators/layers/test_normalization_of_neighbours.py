# SPDX-License-Identifier: Apache-2.0
"""A window of more channels than there are has all of them, and takes no longer."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize("beta", [0.5, 0.75])  # 0.75 has a kernel of its own
@pytest.mark.parametrize("channels", [0, 1, 3])
@pytest.mark.parametrize("size", [7, 8, 2**31 - 1])
def test_a_window_of_more_channels_than_there_are(size: int, channels: int, beta: float) -> None:
    x = np.random.default_rng(0).random((2, channels, 2, 2), np.float32)
    workspace.FeedBlob("x", x)
    workspace.RunOperatorOnce(
        core.CreateOperator("LRN", ["x"], ["y"], size=size, alpha=float(size), beta=beta, bias=1.0)
    )
    expected = x / (1 + (x * x).sum(1, keepdims=True)) ** np.float32(beta)
    np.testing.assert_allclose(workspace.FetchBlob("y"), expected, rtol=1e-5)
