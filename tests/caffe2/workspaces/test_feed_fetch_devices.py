# SPDX-License-Identifier: Apache-2.0
"""`device_option`: where an array that is fed goes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2
from bridge.caffe2.workspace import FeedBlob, FetchBlob, FetchTorch
from tests.helpers.ids import shown
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def caffe2_option(device_type: Any, device_id: int = 0) -> SimpleNamespace:
    return SimpleNamespace(device_type=device_type, device_id=device_id)


@pytest.mark.parametrize(
    "option",
    ["cpu", c10.Device("cpu"), c10.CPU, torch.device("cpu"), caffe2_option(0), b"\x08\x00"],
    ids=["name", "Device", "DeviceType", "torch", "message", "bytes"],
)
def test_any_name_of_the_cpu_shares_or_copies_there(option: Any) -> None:
    t = torch.zeros(2)
    for value in (np.arange(3), t, at.zeros(2), "text", np.array([b"a"], object)):
        FeedBlob("x", value, option)
    FeedBlob("x", t, device_option=option)
    assert FetchTorch("x") is t
    FeedBlob("x", np.arange(3), device_option=option)
    mine = FetchTorch("x")
    FeedBlob("x", np.arange(3)[::-1], device_option=option)
    assert mine.tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "option",
    [
        "gpu0",
        "cpu:1",
        3,
        object(),
        caffe2_option(7),
        caffe2_option("CPU"),
        caffe2_option(1, -3),
        b"cpu",
        b"\x08\x07",
    ],
    ids=shown,
)
def test_unknown_devices_are_refused(option: Any) -> None:
    FeedBlob("x", "old")
    with pytest.raises(c10.EnforceNotMet) as info:
        FeedBlob("x", np.arange(3), option)
    assert info.value.__cause__ is not None
    assert FetchBlob("x") == b"old"


def test_feed_blob_of_c_takes_the_bytes_of_a_device_option() -> None:
    option = core.DeviceOption(caffe2_pb2.CPU)
    assert workspace.C.feed_blob("x", np.arange(3), option.SerializeToString())
    assert FetchBlob("x").tolist() == [0, 1, 2]
    assert workspace.C.feed_blob("x", np.ones(1), caffe2_pb2.DeviceOption().SerializeToString())
    assert FetchBlob("x").tolist() == [1]


def test_shared_memory_is_not_moved_to_another_device() -> None:
    t = torch.zeros(2)
    for option in ("cuda:0", caffe2_option(1)):
        with pytest.raises(c10.EnforceNotMet) as info:
            FeedBlob("x", t, option)
        refused(info.value, "cuda", "cpu")
    assert not workspace.HasBlob("x")
    FeedBlob("x", "text", "cuda:0")  # strings have no device
    assert FetchBlob("x") == b"text"


def test_strings_do_not_live_on_other_devices() -> None:
    with pytest.raises(c10.EnforceNotMet) as info:
        FeedBlob("x", np.array([b"a"], object), "cuda:0")
    refused(info.value, "strings", "cuda")


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(c10.EnforceNotMet):
        FeedBlob("x", np.zeros(2, np.float32), "cuda:99")
    assert not workspace.HasBlob("x")


@pytest.mark.cuda
@pytest.mark.parametrize("option", ["cuda:0", caffe2_option(1)], ids=["name", "message"])
def test_numpy_goes_to_a_cuda_device(option: Any) -> None:
    FeedBlob("x", np.arange(3, dtype=np.float32), option)
    t = FetchTorch("x")
    assert t.device == torch.device("cuda:0")
    assert t.tolist() == [0, 1, 2]
    FeedBlob("x", np.full(3, 4, np.float32), option)
    assert t.tolist() == [4, 4, 4]
    assert FetchBlob("x").tolist() == [4, 4, 4]
    FeedBlob("x", np.arange(2))
    assert FetchTorch("x").device == torch.device("cpu")
    assert t.tolist() == [4, 4, 4]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda:0", marks=pytest.mark.cuda)])
def test_an_array_that_fits_goes_into_the_buffer(device: str) -> None:
    FeedBlob("x", np.zeros((2, 2), np.float32), device)
    t = FetchTorch("x")
    for sizes in ((4,), (3,), (1, 2), ()):
        FeedBlob("x", np.full(sizes, float(t.sum()) + 1, np.float32), device)
        n = int(np.prod(sizes))
        assert FetchTorch("x").data_ptr() == t.data_ptr()
        assert t.flatten()[:n].tolist() == FetchBlob("x").flatten().tolist()
    before = t.tolist()
    FeedBlob("x", np.zeros(5, np.float32), device)
    FeedBlob("x", np.zeros(5, np.float64), device)
    assert t.tolist() == before


@pytest.mark.cuda
def test_lists_go_to_a_cuda_device() -> None:
    FeedBlob("x", [1.0, 2.0], "cuda:0")
    assert FetchTorch("x").device == torch.device("cuda:0")
    assert FetchBlob("x").tolist() == [1.0, 2.0]
    with pytest.raises(EnforceNotMet, match="CPU only"):
        FeedBlob("x", ["text"], "cuda:0")
    assert FetchBlob("x").tolist() == [1.0, 2.0]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda:0", marks=pytest.mark.cuda)])
def test_a_list_gets_memory_of_its_own(device: str) -> None:
    FeedBlob("x", [1, 2], device)
    t = FetchTorch("x")
    FeedBlob("x", [3, 4], device)
    assert (t.tolist(), FetchBlob("x").tolist()) == ([1, 2], [3, 4])


@pytest.mark.cuda
def test_cuda_tensors_are_shared() -> None:
    t = torch.arange(3.0, device="cuda")
    FeedBlob("x", t, "cuda:0")
    assert FetchTorch("x") is t
    assert FetchBlob("x").tolist() == [0, 1, 2]
    FeedBlob("x", np.zeros(3, np.float32), "cuda:0")
    assert t.tolist() == [0, 1, 2]
