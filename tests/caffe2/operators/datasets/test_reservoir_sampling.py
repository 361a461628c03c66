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


def test_sampled_records_are_saved_without_their_columns_as_in_caffe2() -> None:
    workspace.FeedBlob("lengths", np.array([2, 1], np.int32))
    workspace.FeedBlob("items", np.array([1, 2, 3], np.float32))
    net = core.Net("pack")
    net.PackRecords(["lengths", "items"], "p0", fields=["v:lengths", "v:items"])
    workspace.RunNetOnce(net)
    record = b"2-\n\x00\x12'std::shared_ptr<std::vector<TensorCPU>>\"\x00"
    tensor = b"\x08\x02\x10\x00" + 2 * record + b":\x02p0B\x02\x08\x00Z\x04\x08\x00\x10\x02"
    data = b"\n\x02p0\x12\x06Tensor\x1ap" + tensor
    assert workspace.SerializeBlob("p0") == data  # as PyTorch 1.8.1 wrote it
    workspace.DeserializeBlob("read", data)
    assert workspace.SerializeBlob("read") == data.replace(b"p0", b"read").replace(
        b"\n\x02", b"\n\x04"
    ).replace(b":\x02", b":\x04").replace(b"\x1ap", b"\x1ar")
    unpack = core.Net("unpack")
    unpack.UnPackRecords("read", ["lengths2", "items2"], fields=["v:lengths", "v:items"])
    with pytest.raises(EnforceNotMet, match="A record has no columns"):
        workspace.RunNetOnce(unpack)
    with pytest.raises(EnforceNotMet, match="elements but no type"):
        workspace.DeserializeBlob("other", data.replace(b"shared_ptr", b"unique_ptr"))
    with pytest.raises(EnforceNotMet, match="require 3 values"):
        workspace.DeserializeBlob(
            "other",
            data.replace(b"\x08\x02\x10", b"\x08\x03\x10").replace(b"\x10\x02", b"\x10\x03"),
        )


def test_a_reservoir_read_from_a_file_begins_anew() -> None:
    workspace.FeedBlob("lengths", np.array([2, 1], np.int32))
    workspace.FeedBlob("items", np.array([1, 2, 3], np.float32))
    net = core.Net("pack")
    net.PackRecords(["lengths", "items"], "records", fields=["v:lengths", "v:items"])
    workspace.RunNetOnce(net)
    sample = sampling("records", 10)
    workspace.RunNet(sample, 2)
    assert workspace.FetchBlob("count") == 4
    workspace.DeserializeBlob("reservoir", workspace.SerializeBlob("reservoir"))
    workspace.RunNet(sample)
    assert workspace.FetchBlob("count") == 2
