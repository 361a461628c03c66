# SPDX-License-Identifier: Apache-2.0
"""Counters of another type than Caffe2 expects."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_an_int32_is_widened_and_keeps_its_value() -> None:
    workspace.FeedBlob("i", np.int32([2**31 - 1]))
    for count in (2**31, 2**31 + 1):
        workspace.RunOperatorOnce(core.CreateOperator("Iter", ["i"], ["i"]))
        found = workspace.FetchBlob("i")
        assert found.dtype == np.int64 and found.tolist() == [count]
    workspace.FeedBlob("i", np.int32([-1]))
    with pytest.raises(RuntimeError, match="not negative"):
        workspace.RunOperatorOnce(core.CreateOperator("Iter", ["i"], ["i"]))
    assert workspace.FetchBlob("i").dtype == np.int32
