# SPDX-License-Identifier: Apache-2.0
"""`FeedBlob` and its way back: what is shared, what is copied, and into which memory."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2
from bridge.caffe2 import workspace
from bridge.caffe2.workspace import FeedBlob, FetchBlob, FetchTorch
from tests.helpers.dlpack_producer import Producer, RaisingProducer, TensorSpec
from tests.helpers.element_types import IN_NUMPY, IN_TORCH, ElementType
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


def held(name: str = "x") -> caffe2.Tensor:
    """The tensor of a blob."""
    return workspace.Workspace.current.blobs[name].Get(caffe2.Tensor)


# Shared


@pytest.mark.parametrize("element", IN_TORCH, ids=str)
def test_torch_is_shared_and_comes_back_as_the_same_object(element: ElementType) -> None:
    data = torch.frombuffer(bytearray(element.sample_bytes(6)), dtype=torch.uint8)
    t = data.view(element.torch).reshape(2, 3)
    assert FeedBlob("x", t) is True
    assert FetchTorch("x") is t
    assert held().raw_data() == t.data_ptr()
    assert held().dtype().name == element.name
    assert held().sizes() == (2, 3)


def test_torch_and_blob_write_the_same_memory() -> None:
    t = torch.zeros(3)
    FeedBlob("x", t)
    t[1] = 5
    assert FetchBlob("x").tolist() == [0, 5, 0]
    held().mutable_data("float32")[2] = 7
    assert t.tolist() == [0, 5, 7]


def test_metadata_is_not_shared_with_torch() -> None:
    t = torch.arange(6.0)
    FeedBlob("x", t)
    t.resize_(2, 2)
    assert FetchBlob("x").tolist() == [0, 1, 2, 3, 4, 5]
    held().Resize(3, 2)
    assert t.shape == (2, 2)
    assert FetchTorch("x").shape == (3, 2)
    assert FetchTorch("x").data_ptr() == t.data_ptr()


def test_fetching_does_not_keep_torch_from_resizing() -> None:
    t = torch.arange(3.0)
    FeedBlob("x", t)
    assert FetchBlob("x").tolist() == [0, 1, 2]
    t.resize_(1000)
    t[999] = 5
    assert t.shape == (1000,)


@pytest.mark.parametrize(
    "t",
    [torch.tensor(1.5), torch.empty(0), torch.empty(2, 0, 3), torch.arange(6)[2:4]],
    ids=["0-d", "empty", "empty with sizes", "offset"],
)
def test_contiguous_torch_tensors_are_shared(t: torch.Tensor) -> None:
    FeedBlob("x", t)
    assert FetchTorch("x") is t
    fetched = FetchBlob("x")
    assert fetched.shape == tuple(t.shape)
    assert fetched.tolist() == t.tolist()


def test_sizes_of_one_may_have_any_stride() -> None:
    t = torch.arange(6.0).reshape(2, 1, 3).transpose(0, 1)
    FeedBlob("x", t)
    assert FetchTorch("x") is t
    assert FetchBlob("x").tolist() == t.tolist()


def test_a_fed_torch_tensor_is_released_when_the_blob_holds_something_else() -> None:
    t = torch.zeros(3)
    gone = weakref.ref(t)
    FeedBlob("x", t)
    del t
    gc.collect()
    assert gone() is not None
    FeedBlob("x", "text")
    gc.collect()
    assert gone() is None


def test_two_blobs_share_one_tensor() -> None:
    t = torch.zeros(2)
    FeedBlob("x", t)
    FeedBlob("y", t)
    held("x").mutable_data("float32")[0] = 4
    assert FetchBlob("y").tolist() == [4, 0]
    assert FetchTorch("x") is FetchTorch("y") is t


def test_both_wrappers_are_shared() -> None:
    ours = at.arange(6).view(2, 3)
    FeedBlob("a", ours)
    FeedBlob("c", caffe2.Tensor(ours))
    ours[1, 2] = 50
    for name in "ac":
        assert held(name).raw_data() == ours.data_ptr()
        assert FetchBlob(name).tolist() == [[0, 1, 2], [3, 4, 50]]
        assert FetchTorch(name).data_ptr() == ours.data_ptr()


def test_a_caffe2_tensor_is_shared_before_it_is_allocated() -> None:
    ours = caffe2.Tensor([2], "cpu")
    FeedBlob("x", ours)
    ours.mutable_data("int32")[:] = 3
    assert FetchBlob("x").tolist() == [3, 3]


def test_dlpack_producers_are_shared_and_released_once() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    producer = Producer(TensorSpec.of_array(array))
    FeedBlob("x", producer)
    assert held().raw_data() == address(array)
    array[0, 0] = 9
    assert FetchBlob("x").tolist() == [[9, 1, 2], [3, 4, 5]]
    assert sum(producer.deletions) == 0
    workspace.ResetBlob("x")
    gc.collect()
    assert producer.deletions == [1]


@pytest.mark.parametrize(
    "t",
    [torch.tensor([1 + 2j, 3 - 4j]).conj(), torch.tensor([1 + 2j, 3 - 4j]).conj().imag.view(2)[:1]],
    ids=["conjugate", "negative"],
)
def test_lazy_conjugates_and_negatives_are_computed(t: torch.Tensor) -> None:
    assert t.is_conj() or t.is_neg()
    FeedBlob("x", t)
    assert FetchBlob("x").tolist() == t.tolist()
    assert FetchTorch("x").tolist() == t.tolist()


@pytest.mark.parametrize(
    ("t", "word"),
    [
        (torch.ones(2, 3).t(), "contiguous"),
        (torch.arange(6)[::2], "contiguous"),
        (torch.ones(1).expand(3), "contiguous"),
        (torch.ones(1, 2, 3, 4).contiguous(memory_format=torch.channels_last), "contiguous"),
        (torch.ones(2, requires_grad=True), "detach"),
        (torch.nn.Parameter(torch.ones(2)), "detach"),
        (torch.eye(2).to_sparse(), "sparse"),
        (torch.empty(2, device="meta"), "meta"),
        (at.ones(2, 3).t(), "contiguous"),
    ],
    ids=["t", "step", "expand", "channels_last", "grad", "parameter", "sparse", "meta", "at"],
)
def test_tensors_that_cannot_be_shared_are_refused_not_copied(t: Any, word: str) -> None:
    FeedBlob("x", "old")
    for name in ("x", "new"):
        with pytest.raises(c10.EnforceNotMet) as info:
            FeedBlob(name, t)
        assert word in str(refused(info.value, name)).lower()
        assert info.value.__cause__ is not None
    assert FetchBlob("x") == b"old"
    assert workspace.Blobs() == ["x"]


def test_the_error_of_a_producer_is_the_cause() -> None:
    error = ZeroDivisionError("no memory today")
    with pytest.raises(c10.EnforceNotMet) as info:
        FeedBlob("x", RaisingProducer(error))
    refused(info.value, "'x'", "FeedBlob")
    causes, cause = [], info.value.__cause__
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__
    assert error in causes
    assert not workspace.HasBlob("x")


# Copied


@pytest.mark.parametrize("element", IN_NUMPY, ids=str)
def test_numpy_of_any_type_is_copied_both_ways(element: ElementType) -> None:
    assert element.numpy is not None
    array = np.frombuffer(element.sample_bytes(6), np.uint8).view(element.numpy).reshape(2, 3)
    FeedBlob("x", array)
    fetched = FetchBlob("x")
    assert type(fetched) is np.ndarray
    assert fetched.dtype == element.numpy
    assert fetched.shape == (2, 3)
    assert fetched.tobytes() == array.tobytes()
    assert fetched.flags.writeable
    assert fetched.flags.owndata
    assert held().raw_data() not in (address(array), address(fetched))
    fetched.view(np.uint8)[...] = 1
    assert FetchBlob("x").tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.float32([[1, 2, 3], [4, 5, 6]]).T,
        np.arange(5)[::-1],
        np.broadcast_to(np.int8(3), (2, 2)),
        np.array(1.5),
        np.empty((0,), np.float32),
        np.empty((2, 0, 3), np.int16),
        np.arange(3, dtype=">i4"),
        np.arange(3, dtype=">c16"),
        np.arange(3, dtype=">f2")[::2],
        np.frombuffer(b"\0" + bytes(range(8)), np.uint8)[1:].view(np.int32),
        np.ones((1, 2)).view(np.matrix),
        np.arange(2, dtype=np.longlong),
        np.ones(2, ml_dtypes.float8_e4m3fn),
    ],
    ids=[
        "transposed",
        "reversed",
        "broadcast",
        "0-d",
        "empty",
        "empty with sizes",
        "big-endian",
        "big-endian complex",
        "big-endian strided",
        "misaligned",
        "subclass",
        "longlong",
        "float8",
    ],
)
def test_arrays_of_any_layout_are_copied(array: np.ndarray[Any, Any]) -> None:
    for value in ("text", np.ones(3, np.float32), torch.ones(2), array):  # over whatever was there
        FeedBlob("x", value)
        FeedBlob("x", array)
        fetched = FetchBlob("x")
        assert type(fetched) is np.ndarray
        assert fetched.shape == array.shape
        assert fetched.dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(fetched, np.asarray(array))


def test_read_only_numpy_is_copied_into_writable_memory() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    FeedBlob("x", array)
    FetchTorch("x")[0] = 9
    assert FetchBlob("x").tolist() == [9, 1, 2]
    assert array.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "array",
    [
        np.ones(2, np.longdouble),
        np.array(["2000-01-01"], "M8[D]"),
        np.zeros(2, [("a", "i4")]),
        np.zeros(2, "V3"),
        np.ma.array([1.0, 2.0], mask=[False, True]),
        np.ma.array([b"a", b"b"], mask=[False, True], dtype=object),
    ],
    ids=["long double", "datetime", "structured", "void", "masked", "masked strings"],
)
def test_numpy_of_no_such_type_is_refused(array: np.ndarray[Any, Any]) -> None:
    for old in ("text", np.arange(2), torch.arange(2)):
        FeedBlob("x", old)
        for name in ("x", "new"):
            with pytest.raises(c10.EnforceNotMet) as info:
                FeedBlob(name, array)
            assert info.value.__cause__ is not None
        fetched = FetchBlob("x")
        assert fetched == b"text" if isinstance(old, str) else fetched.tolist() == [0, 1]
    assert workspace.Blobs() == ["x"]


# What is nothing to feed


class Unfeedable:
    def __str__(self) -> str:
        raise AssertionError("an error message does not need this")

    __repr__ = __str__


@pytest.mark.parametrize(
    "value",
    [
        None,
        {1: 2},
        {1, 2},
        len,
        torch.float32,
        torch.Tensor,
        at.Tensor,
        Unfeedable(),
        Ellipsis,
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_that_are_not_values_are_refused(value: Any) -> None:
    FeedBlob("x", np.arange(2))
    t = FetchTorch("x")
    for name in ("x", "new"):
        with pytest.raises(c10.EnforceNotMet) as info:
            FeedBlob(name, value)
        refused(info.value, f"'{name}'", type(value).__name__, "FeedBlob", kind=TypeError)
        assert info.value.__cause__ is not None
    assert FetchTorch("x").data_ptr() == t.data_ptr()
    assert t.tolist() == [0, 1]
    assert workspace.Blobs() == ["x"]


@pytest.mark.parametrize(
    "value", [[1, 2], (1.5, 2), 3, 1.5, True, np.float32(2), 2j, [b"a", b"b"], [["a"], ["b"]]]
)
def test_python_values_are_copied(value: Any) -> None:
    assert FeedBlob("x", value) is True
    fetched = FetchBlob("x")
    wanted = np.asarray(value)
    assert fetched.shape == wanted.shape
    assert fetched.astype(wanted.dtype).tolist() == wanted.tolist()
    with pytest.raises(c10.EnforceNotMet, match=r"ragged|inhomogeneous"):
        FeedBlob("x", [[1], [2, 3]])
    assert FetchBlob("x").shape == wanted.shape


def test_feed_blob_takes_its_arguments_by_name_and_no_others() -> None:
    assert FeedBlob(name="x", value=np.ones(1), device_option=None) is True
    with pytest.raises(TypeError):
        FeedBlob("x")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        FeedBlob("x", np.ones(1), copy=True)  # type: ignore[call-arg]
