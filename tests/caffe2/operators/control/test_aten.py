# SPDX-License-Identifier: Apache-2.0
"""ATen calls any function of torch."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_aten_takes_a_list_of_tensors_between_others():
    mask = np.array([[True, False], [True, True]])
    for name, value in (
        ("x", np.zeros((2, 2), np.float32)),
        ("mask", mask),
        ("values", np.array([1, 2, 3], np.float32)),
    ):
        workspace.FeedBlob(name, value)
    op = core.CreateOperator("ATen", ["x", "mask", "values"], ["y"], operator="index_put")
    workspace.RunOperatorOnce(op)
    assert workspace.FetchBlob("y").tolist() == [[1, 0], [2, 3]]
    assert not workspace.FetchBlob("x").any()
    op = core.CreateOperator("ATen", ["x", "y"], ["z"], operator="cat", dim=1)
    workspace.RunOperatorOnce(op)
    assert workspace.FetchBlob("z").shape == (2, 4)
