# SPDX-License-Identifier: Apache-2.0
"""Checks of elements in runs whose calls are recorded."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace


@pytest.mark.parametrize(
    ("kind", "feeds", "wrong"),
    [
        ("ReversePackedSegs", [np.ones((4, 2, 3), "f"), [4, 2]], [5, 2]),
        ("SquareRootDivide", [np.ones((2, 3), "f"), [4, 1]], [4, -1]),
        ("LengthsToShape", [[3, 3]], [3, 4]),
        ("BatchPermutation", [np.ones((2, 3), "f"), [1, 0]], [1, 1]),
        ("ReduceBackMean", [np.ones((2, 3), "f"), [3, 1]], [3, 4]),
    ],
)
def test_a_recorded_operator_refuses_elements_that_its_first_runs_did_not_have(
    kind, feeds, wrong
) -> None:
    workspace.ResetWorkspace()
    *names, last = [f"x{i}" for i in range(len(feeds))]
    for name, value in zip([*names, last], feeds, strict=True):
        workspace.FeedBlob(name, np.asarray(value, None if name in names else np.int32))
    net = core.Net("checked")
    net.Proto().op.extend([core.CreateOperator(kind, [*names, last], ["y"])])
    workspace.CreateNet(net)
    for _ in range(3):
        workspace.RunNet(net)
    expected = workspace.FetchBlob("y")
    workspace.FeedBlob(last, np.array(wrong, np.int32))
    for _ in range(2):
        with pytest.raises(EnforceNotMet):
            workspace.RunNet(net)
    workspace.FeedBlob(last, np.asarray(feeds[-1], np.int32))
    workspace.RunNet(net)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), expected)
    workspace.ResetWorkspace()
