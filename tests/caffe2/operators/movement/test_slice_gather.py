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
def test_an_index_out_of_range(
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
