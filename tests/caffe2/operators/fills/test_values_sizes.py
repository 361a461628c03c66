# SPDX-License-Identifier: Apache-2.0
"""Sizes of fills that are the elements of an input, and change from run to run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize(
    ("op_type", "args"),
    [
        ("ConstantFill", {"value": 2.0}),
        ("DiagonalFill", {"value": 2.0}),
        ("RangeFill", {}),
        ("GaussianFill", {}),
        ("XavierFill", {}),
        ("MSRAFill", {}),
        ("UniformFill", {}),
    ],
)
def test_a_fill_follows_the_sizes_in_its_input(op_type: str, args: dict[str, Any]) -> None:
    net = core.Net("fill")
    getattr(net, op_type)("sizes", "y", input_as_shape=1, **args)
    workspace.FeedBlob("sizes", np.array([1, 1]))
    workspace.CreateNet(net)
    for sizes in [[2, 3], [2, 3], [3, 2], [3, 3], [3, 3], [2, 5]]:
        workspace.FeedBlob("sizes", np.array(sizes))
        workspace.RunNet(net)
        assert workspace.FetchBlob("y").shape == tuple(sizes)
