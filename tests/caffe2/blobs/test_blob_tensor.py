# SPDX-License-Identifier: Apache-2.0
"""The Python tensor of a blob: `init`, `feed`, `fetch`, `data`, `shape`, `reshape`, `to_torch`."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2
from bridge.caffe2 import core
from bridge.caffe2.workspace import Blob
from tests.helpers.workspaces import refused


def fed(value: Any) -> Blob:
    blob = Blob()
    blob.feed(value)
    return blob


def test_tensor_makes_an_empty_tensor() -> None:
    blob = Blob()
    tensor = blob.tensor()
    assert blob.is_tensor()
    assert tensor.shape == (0,)
    for call in (tensor.fetch, blob.fetch, tensor.to_torch):
        with pytest.raises(c10.EnforceNotMet):
            call()
    assert tensor.data.dtype == np.float32
    assert tensor.data.shape == (0,)
    assert blob.fetch().dtype == np.float32


def test_tensor_replaces_a_value_that_is_not_a_tensor() -> None:
    blob = fed("text")
    with pytest.raises(c10.EnforceNotMet) as info:
        blob.as_tensor()
    refused(info.value, "string", "tensor()")
    assert blob.fetch() == b"text"
    assert blob.tensor().shape == (0,)
    assert not blob.IsType(bytes)


def test_it_is_one_object_while_it_is_in_use() -> None:
    blob = fed(np.arange(3))
    tensor = blob.tensor()
    assert blob.tensor() is tensor
    assert blob.as_tensor() is tensor
    blob.feed(torch.zeros(1))
    assert blob.tensor() is not tensor
    assert tensor.fetch().tolist() == [0, 1, 2]


def test_data_is_the_memory() -> None:
    blob = fed(np.array([1.1, 1.2, 1.3]))
    tensor = blob.tensor()
    tensor.data[0] = 3.3
    assert tensor.data.tolist() == blob.fetch().tolist() == [3.3, 1.2, 1.3]
    assert tensor.data.flags.writeable
    assert tensor.data.ctypes.data == blob.to_torch().data_ptr()
    view = tensor.data
    blob.Reset()
    del blob, tensor
    gc.collect()
    assert view.tolist() == [3.3, 1.2, 1.3]


def test_data_of_strings_is_a_copy() -> None:
    tensor = fed(np.array([[b"a", b"b"]], object)).tensor()
    data = tensor.data
    assert data.tolist() == [[b"a", b"b"]]
    data[0, 0] = b"z"
    assert tensor.data.tolist() == [[b"a", b"b"]]


def test_data_allocates_memory_for_the_sizes() -> None:
    tensor = fed(caffe2.Tensor([2, 2], "cpu")).tensor()
    tensor.data[:] = 4
    assert tensor.data.dtype == np.float32
    assert tensor.fetch().tolist() == [[4, 4], [4, 4]]
    tensor.reshape([10])
    tensor.data[:] = 5
    assert tensor.fetch().tolist() == [5] * 10


NUMBERS = {
    "FLOAT": (1, "float32"),
    "INT32": (2, "int32"),
    "BYTE": (3, "uint8"),
    "BOOL": (5, "bool"),
    "UINT8": (6, "uint8"),
    "INT8": (7, "int8"),
    "UINT16": (8, "uint16"),
    "INT16": (9, "int16"),
    "INT64": (10, "int64"),
    "FLOAT16": (12, "float16"),
    "DOUBLE": (13, "float64"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_init_takes_the_number_of_each_type(name: str) -> None:
    number, dtype = NUMBERS[name]
    assert getattr(core.DataType, name) == number
    blob = Blob()
    tensor = blob.tensor()
    assert tensor.init([2, 3], getattr(core.DataType, name)) is None
    assert tensor.shape == (2, 3)
    assert tensor.data.dtype == np.dtype(dtype)
    tensor.data[:] = 1
    assert blob.fetch().tolist() == [[1] * 3] * 2


@pytest.mark.parametrize("dtype", ["float32", c10.float32, np.float32, torch.float32])
def test_init_takes_the_name_of_a_type(dtype: Any) -> None:
    tensor = Blob().tensor()
    tensor.init((3,), dtype)
    assert tensor.data.dtype == np.float32


@pytest.mark.parametrize(
    "dims", [[], (0, 3), np.array([2, 3]), c10.IntArrayRef([4]), range(1, 3)], ids=repr
)
def test_init_takes_any_sizes(dims: Any) -> None:
    tensor = Blob().tensor()
    tensor.init(dims, core.DataType.FLOAT)
    assert tensor.shape == tuple(dims)
    assert tensor.data.shape == tuple(dims)


@pytest.mark.parametrize(
    ("dims", "dtype"),
    [
        ([2], core.DataType.UNDEFINED),
        ([2], core.DataType.STRING),
        ([2], core.DataType.ZERO_COLLISION_HASH),
        ([2], 99),
        ([2], "no such type"),
        ([2], bytes),
        ([2], None),
        ([-1], core.DataType.FLOAT),
        ([2**40, 2**40], core.DataType.FLOAT),
        ([2**50], core.DataType.FLOAT),
        ([1.5], core.DataType.FLOAT),
        (3, core.DataType.FLOAT),
        ("ab", core.DataType.FLOAT),
        (None, core.DataType.FLOAT),
    ],
    ids=str,
)
def test_init_that_fails_changes_nothing(dims: Any, dtype: Any) -> None:
    for value in (np.arange(3, dtype=np.float32), torch.arange(3.0)):
        blob = fed(value)
        tensor = blob.tensor()
        with pytest.raises(c10.EnforceNotMet):
            tensor.init(dims, dtype)
        assert tensor.shape == (3,)
        assert tensor.fetch().tolist() == [0, 1, 2]


def test_init_keeps_a_buffer_that_does() -> None:
    blob = fed(np.arange(6, dtype=np.float32))
    tensor = blob.tensor()
    t = blob.to_torch()
    tensor.init([6], core.DataType.FLOAT)
    assert tensor.data.tolist() == [0, 1, 2, 3, 4, 5]
    tensor.init([2, 2], core.DataType.FLOAT)
    assert tensor.data.ctypes.data == t.data_ptr()
    for dims, dtype in (([6], core.DataType.INT32), ([60], core.DataType.FLOAT)):
        tensor.init(dims, dtype)
        tensor.data[:] = 9
        assert t.tolist() == [0, 1, 2, 3, 4, 5]
        tensor.init([6], core.DataType.FLOAT)


def test_feed_copies_the_array() -> None:
    blob = fed(np.zeros(2))
    tensor = blob.tensor()
    array = np.array([1.1, 10.2])
    assert tensor.feed(array) is None
    array[0] = 5.2
    assert tensor.data.tolist() == [1.1, 10.2]
    tensor.feed(np.ones((3,), np.int32))
    assert blob.fetch().tolist() == [1, 1, 1]
    assert blob.fetch().dtype == np.int32
    for strings in (np.array([[b"abc", b"d"]], object), np.array([["abc", "d"]])):
        tensor.feed(strings)
        assert blob.fetch().tolist() == [[b"abc", b"d"]]


def test_fetch_copies_the_elements() -> None:
    tensor = fed(np.array([1.1, 1.2])).tensor()
    fetched = tensor.fetch()
    tensor.data[0] = 5.2
    assert fetched.tolist() == [1.1, 1.2]
    assert tensor.fetch().tolist() == [5.2, 1.2]


def test_feed_goes_into_the_own_buffer_and_into_no_other() -> None:
    blob = fed(np.zeros(3))
    mine = blob.to_torch()
    blob.tensor().feed(np.ones(3))
    assert mine.tolist() == [1, 1, 1]
    for theirs in (torch.zeros(3), at.zeros(3)):
        blob = fed(theirs)
        tensor = blob.tensor()
        tensor.feed(np.ones(3, np.float32))
        assert blob.fetch().tolist() == tensor.fetch().tolist() == [1, 1, 1]
        assert theirs.tolist() == [0, 0, 0]
        tensor.feed(np.full(3, 2, np.float32))
        assert blob.fetch().tolist() == [2, 2, 2]


def test_it_follows_numpy_that_is_fed_to_the_blob() -> None:
    for first in (np.zeros(3), torch.zeros(3), at.zeros(3)):
        blob = fed(first)
        tensor = blob.tensor()
        for array in (np.ones(3), np.arange(10), np.array([b"a"], object)):
            blob.feed(array)
            assert tensor.fetch().tolist() == array.tolist()
            assert blob.tensor() is tensor


@pytest.mark.parametrize(
    "value", [[1, 2], "text", None, torch.ones(2), at.ones(2), np.float32(1)], ids=repr
)
def test_feed_takes_arrays_only(value: Any) -> None:
    tensor = fed(np.arange(2)).tensor()
    with pytest.raises(c10.EnforceNotMet) as info:
        tensor.feed(value)
    refused(info.value, type(value).__name__)
    assert tensor.fetch().tolist() == [0, 1]


@pytest.mark.parametrize(
    "array", [np.zeros(2, "M8[s]"), np.array([1, None])], ids=["datetime", "objects"]
)
def test_feed_that_fails_changes_nothing(array: Any) -> None:
    tensor = fed(np.arange(2)).tensor()
    with pytest.raises(c10.EnforceNotMet) as info:
        tensor.feed(array)
    assert info.value.__cause__ is not None
    assert tensor.fetch().tolist() == [0, 1]


def test_after_the_blob_holds_something_else() -> None:
    blob = fed(np.arange(3))
    tensor = blob.tensor()
    blob.Reset()
    assert tensor.fetch().tolist() == [0, 1, 2]
    assert tensor.to_torch().tolist() == [0, 1, 2]
    with pytest.raises(c10.EnforceNotMet):
        tensor.feed(np.zeros(3))
    assert tensor.fetch().tolist() == [0, 1, 2]


def test_reshape_keeps_the_memory_and_refuses_wrong_sizes() -> None:
    blob = fed(np.arange(6))
    tensor = blob.tensor()
    before = tensor.data.ctypes.data
    assert tensor.reshape([3, 2]) is None
    assert tensor.shape == (3, 2)
    assert blob.fetch().tolist() == [[0, 1], [2, 3], [4, 5]]
    tensor.reshape((4,))
    assert blob.fetch().tolist() == [0, 1, 2, 3]
    tensor.reshape(np.array([6]))
    assert tensor.data.tolist() == [0, 1, 2, 3, 4, 5]
    assert tensor.data.ctypes.data == before
    for dims in ([2, -1], 6, None, ["a"]):
        with pytest.raises(c10.EnforceNotMet):
            tensor.reshape(dims)  # type: ignore[arg-type]
    assert tensor.shape == (6,)


def test_reshape_leaves_the_sizes_of_a_fed_tensor_alone() -> None:
    t = torch.arange(6)
    blob = fed(t)
    blob.tensor().reshape([2, 3])
    assert t.shape == (6,)
    assert blob.to_torch().shape == (2, 3)
    assert blob.to_torch().data_ptr() == t.data_ptr()


def test_attributes_cannot_be_set_and_the_class_makes_no_objects() -> None:
    tensor = fed(np.arange(3)).tensor()
    for name in ("data", "shape", "other"):
        with pytest.raises(AttributeError):
            setattr(tensor, name, 1)
    with pytest.raises(TypeError):
        type(tensor)()
    assert "3" in repr(tensor)


def test_read_only_memory_stays_read_only() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    import bridge

    blob = fed(bridge.from_dlpack(array))
    assert blob.tensor().data.flags.writeable is False
    blob.feed(np.zeros(3, np.int64))
    assert blob.tensor().data.flags.writeable is True
    assert array.tolist() == [0, 1, 2]


@pytest.mark.cuda
def test_a_cuda_tensor_is_kept() -> None:
    t = torch.arange(3.0, device="cuda")
    blob = fed(t)
    tensor = blob.tensor()
    assert tensor.to_torch() is t
    assert tensor.data.tolist() == [0, 1, 2]
    tensor.init([2], core.DataType.FLOAT)
    assert tensor.to_torch().device == t.device
