# SPDX-License-Identifier: Apache-2.0
"""ReservoirSampling of records and strings, which are objects."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def sampling(data: str, most: int) -> core.Net:
    net = core.Net("sampling")
    net.CreateMutex([], "mutex")
    net.ConstantFill([], "count", shape=[], value=0, dtype=core.DataType.INT64)
    net.ConstantFill([], "reservoir", shape=[0])
    workspace.RunNetOnce(net)
    net = core.Net("step")
    net.ReservoirSampling(
        ["reservoir", "count", data, "mutex"], ["reservoir", "count"], num_to_collect=most
    )
    workspace.CreateNet(net)
    return net


def test_strings_are_sampled_by_row() -> None:
    rows = np.array([[b"a", b"b"], [b"c", b"d"], [b"e", b"f"]], object)
    workspace.FeedBlob("data", rows)
    net = sampling("data", 2)
    workspace.RunNet(net, 5)
    found = workspace.FetchBlob("reservoir")
    assert found.shape == (2, 2)
    assert {tuple(row) for row in found.tolist()} <= {tuple(row) for row in rows.tolist()}
    assert workspace.FetchBlob("count") == 15
    workspace.FeedBlob("data", rows[:, :1].copy())
    with pytest.raises(EnforceNotMet, match="do not fit the reservoir"):
        workspace.RunNet(net)


def test_records_are_sampled() -> None:
    net = core.Net("pack")
    workspace.FeedBlob("lengths", np.array([2, 0, 1], np.int32))
    workspace.FeedBlob("items", np.array([1, 2, 3], np.float32))
    net.PackRecords(["lengths", "items"], "records", fields=["v:lengths", "v:items"])
    workspace.RunNetOnce(net)
    workspace.RunNet(sampling("records", 10))
    unpack = core.Net("unpack")
    unpack.UnPackRecords("reservoir", ["lengths2", "items2"], fields=["v:lengths", "v:items"])
    workspace.RunNetOnce(unpack)
    np.testing.assert_array_equal(workspace.FetchBlob("lengths2"), [2, 0, 1])
    np.testing.assert_array_equal(workspace.FetchBlob("items2"), [1, 2, 3])
