# SPDX-License-Identifier: Apache-2.0
"""`ShareExternalPointer`: addresses, buffers and DLPack producers as memory of a tensor."""

import array
import gc
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2

from .external_block import Block
from .state import filled, refused, values


def test_memory_at_an_address_is_shared() -> None:
    block = Block()
    tensor = caffe2.Tensor((2, 2), "cpu")
    tensor.ShareExternalPointer(block.address, "float32")
    assert tensor.sizes() == (2, 2)
    assert tensor.raw_data() == block.address
    assert tensor.capacity_nbytes() == 16
    assert tensor.storage().use_count() == 1
    tensor.mutable_data("float32")[1] = 22
    assert block.array.tolist() == [1.0, 22.0, 3.0, 4.0]


def test_bytes_beyond_the_elements_are_spare_room() -> None:
    block = Block()
    tensor = caffe2.Tensor((1,), "cpu")
    tensor.ShareExternalPointer(block.address, "float32", 16)
    assert tensor.capacity_nbytes() == 16
    tensor.Resize(4)
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0]
    assert tensor.raw_data() == block.address


def test_fewer_bytes_than_elements_are_refused() -> None:
    block = Block()
    tensor = caffe2.Tensor((4,), "cpu")
    with refused(tensor):
        tensor.ShareExternalPointer(block.address, "float32", 12)
    with refused(tensor):
        tensor.ShareExternalPointer(block.address, "float64", 16)


def test_an_address_needs_a_type_and_a_place() -> None:
    block = Block()
    tensor = filled((4,))
    with refused(tensor):
        tensor.ShareExternalPointer(block.address)
    with refused(tensor, error=(c10.EnforceNotMet, TypeError)):
        tensor.ShareExternalPointer(None, "float32")
    with refused(tensor, error=(c10.EnforceNotMet, TypeError)):
        tensor.ShareExternalPointer("somewhere", "float32")
    with refused(tensor):
        tensor.ShareExternalPointer(-8, "float32")


@pytest.mark.parametrize(
    ("buffer", "name"),
    [
        (lambda: np.arange(6, dtype=np.int16), "int16"),
        (lambda: np.arange(6, dtype=np.float64).reshape(2, 3), "float64"),
        (lambda: bytearray(range(6)), "uint8"),
        (lambda: memoryview(bytearray(range(6))), "uint8"),
        (lambda: array.array("d", range(6)), "float64"),
        (lambda: array.array("i", range(6)), "int32"),
    ],
    ids=["int16", "two dimensions", "bytearray", "memoryview", "array d", "array i"],
)
def test_a_buffer_has_its_own_type(buffer: Callable[[], Any], name: str) -> None:
    source = buffer()
    tensor = caffe2.Tensor((6,), "cpu")
    tensor.ShareExternalPointer(source)
    assert tensor.IsType(name)
    assert values(tensor) == [0, 1, 2, 3, 4, 5]
    tensor.mutable_data(name)[5] = 55
    assert np.asarray(source).reshape(-1)[5] == 55


def test_a_buffer_is_shared_as_another_type() -> None:
    source = bytearray(16)
    tensor = caffe2.Tensor((2,), "cpu")
    tensor.ShareExternalPointer(source, "float64")
    tensor.mutable_data("float64")[:] = [1.0, 2.0]
    assert np.frombuffer(source, np.float64).tolist() == [1.0, 2.0]
    assert tensor.capacity_nbytes() == 16


@pytest.mark.parametrize(
    "producer",
    [lambda: torch.arange(4.0), lambda: at.arange(4, dtype="float32")],
    ids=["torch", "at"],
)
def test_a_dlpack_producer_is_shared(producer: Callable[[], Any]) -> None:
    source = producer()
    tensor = caffe2.Tensor((2, 2), "cpu")
    tensor.ShareExternalPointer(source)
    assert tensor.IsType("float32")
    assert tensor.raw_data() == source.data_ptr()
    tensor.mutable_data("float32")[3] = 33
    assert source.tolist() == [0.0, 1.0, 2.0, 33.0]
    del source
    gc.collect()
    assert values(tensor) == [0.0, 1.0, 2.0, 33.0]


def test_the_buffer_is_kept_alive() -> None:
    tensor = caffe2.Tensor((4,), "cpu")
    tensor.ShareExternalPointer(np.array([1.0, 2.0, 3.0, 4.0]))
    gc.collect()
    churn = [np.full(4, 9.0) for _ in range(100)]
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0]
    view = tensor.data()
    del tensor, churn
    gc.collect()
    assert view.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_buffer_is_released_with_the_memory() -> None:
    source = bytearray(8)
    tensor = caffe2.Tensor((8,), "cpu")
    tensor.ShareExternalPointer(source)
    with pytest.raises(BufferError):
        source.append(1)  # exported buffers cannot move
    tensor.FreeMemory()
    source.append(1)


def read_only_array() -> Any:
    source = np.zeros(8)
    source.flags.writeable = False
    return source


@pytest.mark.parametrize(
    "source",
    [
        bytes(64),
        memoryview(bytes(64)),
        read_only_array(),
        mmap.mmap(-1, 64, access=mmap.ACCESS_READ),
        np.zeros(3),
        bytearray(2),
        np.zeros((8, 2))[:, 0],
        np.zeros(8)[::-1],
        np.zeros(8, ">f8"),
        np.array([object()] * 8),
    ],
    ids=[
        *["bytes", "memoryview", "read-only", "mmap", "too few", "too few bytes"],
        *["strided", "reversed", "byte order", "objects"],
    ],
)
def test_buffers_that_cannot_be_shared_are_refused(source: Any) -> None:
    tensor = caffe2.Tensor((4,), "cpu")
    with refused(tensor):
        tensor.ShareExternalPointer(source)


def test_on_a_shared_storage_the_others_keep_theirs() -> None:
    block = Block()
    tensor = filled((4,), first=5)
    alias = tensor.Alias()
    tensor.ShareExternalPointer(block.address, "float32", 0, block.delete)
    assert values(alias) == [5.0, 6.0, 7.0, 8.0]
    assert tensor.storage().use_count() == alias.storage().use_count() == 1
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0]


def test_strings_do_not_live_in_external_memory() -> None:
    tensor = caffe2.Tensor((4,), "cpu")
    with refused(tensor):
        tensor.ShareExternalPointer(bytearray(64), "string")
