# SPDX-License-Identifier: Apache-2.0
"""An index out of range is the same error along every axis and on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize("kind", [0, pytest.param(1, marks=pytest.mark.cuda)])
@pytest.mark.parametrize("index", [-4, -1, 3])
@pytest.mark.parametrize(
    ("op_type", "arguments"),
    [
        ("Gather", {"axis": 1}),
        ("Gather", {"axis": 2}),
        ("Gather", {"axis": 1, "match_outer": True}),
        ("BatchGather", {}),
    ],
)
def test_an_index_out_of_range_is_refused_along_every_axis(
    kind: int, index: int, op_type: str, arguments: dict[str, Any]
) -> None:
    device = core.DeviceOption(kind)
    places = np.array([[0, index], [1, 2]]) if "match_outer" in arguments else np.array([0, index])
    workspace.FeedBlob("x", np.arange(18.0, dtype=np.float32).reshape(2, 3, 3), device)
    workspace.FeedBlob("i", places, device)
    workspace.FeedBlob("y", np.zeros(1))
    op = core.CreateOperator(op_type, ["x", "i"], ["y"], device_option=device, **arguments)
    axis = arguments.get("axis", 1)
    expected = rf"{index}.* is out of range for 3 rows along axis {axis}"
    with pytest.raises(EnforceNotMet, match=expected) as raised:
        workspace.RunOperatorOnce(op)
    assert isinstance(raised.value, IndexError)
    assert workspace.FetchBlob("y").tolist() == [0]


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_index_out_of_range_is_refused_after_recorded_runs(axis: int, once: bool) -> None:
    good, bad = np.array([0, 2] * 40), np.array([0, 3] * 40)
    net = core.Net("gathered")
    net.Gather(["x", "i"], ["y"], axis=axis)
    workspace.FeedBlob("x", np.arange(27_000, dtype=np.float32).reshape(3, 3, 3, 1000))
    workspace.FeedBlob("i", good)
    workspace.CreateNet(net)

    def run() -> None:
        if once:
            workspace.RunOperatorOnce(net.Proto().op[0])
        else:
            workspace.RunNet(net)

    for _ in range(3):
        for _ in range(3):
            run()
        before = workspace.FetchBlob("y")
        workspace.FeedBlob("i", bad)
        expected = rf"is out of range for 3 rows along axis {axis}"
        with pytest.raises(IndexError, match=expected) as raised:
            run()
        assert isinstance(raised.value, EnforceNotMet)
        np.testing.assert_array_equal(workspace.FetchBlob("y"), before)
        workspace.FeedBlob("i", good)
