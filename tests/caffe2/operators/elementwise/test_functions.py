# SPDX-License-Identifier: Apache-2.0
"""What cases recorded from Caffe2 do not show of functions of elements."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_the_gradient_of_clipped_rows_may_be_of_any_type() -> None:
    workspace.FeedBlob("x", np.array([[-1.0], [-2.0]], np.float32))
    workspace.FeedBlob("rows", np.array([1]))
    workspace.FeedBlob("gradient", np.ones((1, 1)))  # of float64, and its elements are not read
    operator = core.CreateOperator("EnsureClipped", ["x", "rows", "gradient"], ["x"], min=0.0)
    workspace.RunOperatorOnce(operator)
    assert workspace.FetchBlob("x").tolist() == [[-1.0], [0.0]]
