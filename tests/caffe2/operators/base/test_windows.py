# SPDX-License-Identifier: Apache-2.0
"""Windows that no image has."""

from __future__ import annotations

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

TOO_LARGE = (2**31, -(2**31) - 1, 2**63 - 1, -(2**63))


@pytest.mark.parametrize("value", TOO_LARGE)
@pytest.mark.parametrize("name", ["kernel", "stride", "pad", "dilation"])
@pytest.mark.parametrize("type_", ["MaxPool", "AveragePool", "Conv"])
def test_numbers_that_caffe2_could_not_hold_are_refused(type_: str, name: str, value: int) -> None:
    workspace.FeedBlob("x", np.ones((1, 1, 4, 4), np.float32))
    workspace.FeedBlob("w", np.ones((1, 1, 2, 2), np.float32))
    inputs = ["x", "w"] if type_ == "Conv" else ["x"]
    with pytest.raises(c10.EnforceNotMet, match="32 bits"):
        workspace.RunOperatorOnce(
            core.CreateOperator(type_, inputs, ["y"], **{"kernel": 2, name: value})
        )
    assert not workspace.HasBlob("y")


@pytest.mark.parametrize("name", ["kernel", "stride", "pad", "dilation"])
@pytest.mark.parametrize("type_", ["MaxPool", "AveragePool", "Conv", "MaxPoolGradient"])
def test_the_largest_windows_that_caffe2_held_do_not_overflow(type_: str, name: str) -> None:
    """They are computed, or refused for what they would take."""
    image = np.ones((1, 1, 4, 4), np.float32)
    for blob in ("x", "w", "y", "dy"):
        workspace.FeedBlob(blob, image)
    inputs = {"Conv": ["x", "w"], "MaxPoolGradient": ["x", "y", "dy"]}.get(type_, ["x"])
    for value in (2**31 - 1, -(2**31)):
        arguments = {"kernel": 4, name: value}
        operator = core.CreateOperator(type_, inputs, ["z"], **arguments)
        if name == "stride" and value > 0 and type_ != "MaxPoolGradient":
            workspace.RunOperatorOnce(operator)
            assert workspace.FetchBlob("z").shape == (1, 1, 1, 1)
        else:
            with pytest.raises((c10.EnforceNotMet, MemoryError)):
                workspace.RunOperatorOnce(operator)
