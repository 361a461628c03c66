# SPDX-License-Identifier: Apache-2.0
"""`ShareExternalPointer`: memory of others, and a deleter that is called once, with its address."""

import array
import gc
import mmap
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2
from tests.helpers.isolate import isolated, run_python

from .tensor_state import filled, refused, values


class Block:
    """Four float32 with a deleter that counts."""

    def __init__(self) -> None:
        self.array = np.array([1, 2, 3, 4], np.float32)
        self.address = self.array.ctypes.data
        self.deleted: list[int] = []

    def delete(self, address: int) -> None:
        self.deleted.append(address)

    def tensor(self) -> caffe2.Tensor:
        tensor = caffe2.Tensor((4,), "cpu")
        tensor.ShareExternalPointer(self.address, "float32", 0, self.delete)
        return tensor


def test_an_address() -> None:
    block = Block()
    tensor = caffe2.Tensor((2, 2), "cpu")
    tensor.ShareExternalPointer(block.address, "float32")
    assert tensor.sizes() == (2, 2)
    assert tensor.raw_data() == block.address
    assert tensor.capacity_nbytes() == 16
    assert tensor.storage().use_count() == 1
    tensor.mutable_data("float32")[1] = 22
    assert block.array.tolist() == [1.0, 22.0, 3.0, 4.0]


def test_more_bytes_than_elements() -> None:
    block = Block()
    tensor = caffe2.Tensor((1,), "cpu")
    tensor.ShareExternalPointer(block.address, "float32", 16)
    assert tensor.capacity_nbytes() == 16
    tensor.Resize(4)
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0]
    assert tensor.raw_data() == block.address


def test_fewer_bytes_than_elements() -> None:
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


def test_a_buffer_as_another_type() -> None:
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
def test_a_dlpack_producer(producer: Callable[[], Any]) -> None:
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


def test_the_buffer_is_let_go() -> None:
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
def test_buffers_that_cannot_be_shared(source: Any) -> None:
    tensor = caffe2.Tensor((4,), "cpu")
    with refused(tensor):
        tensor.ShareExternalPointer(source)


SPARE = np.zeros(4)

LETTING_GO: dict[str, Callable[[caffe2.Tensor], object]] = {
    "free": lambda t: t.FreeMemory(),
    "resize": lambda t: t.Resize(5),
    "larger type": lambda t: t.mutable_data("float64"),
    "strings": lambda t: t.mutable_data("string"),
    "extend": lambda t: t.Extend(1),
    "reserve": lambda t: t.ReserveSpace(5),
    "share": lambda t: t.ShareData(filled((4,))),
    "copy of another type": lambda t: t.CopyFrom(filled((4,), "int32")),
    "other memory": lambda t: t.ShareExternalPointer(np.zeros(4)),
    "reinitialize": lambda t: caffe2.ReinitializeTensor(t, (4,), "int32"),
    "storage reset": lambda t: t.storage().reset(),
    "storage shares": lambda t: t.storage().UniqueStorageShareExternalPointer(
        SPARE.ctypes.data, "float64", SPARE.nbytes
    ),
}


@pytest.mark.parametrize("let_go", LETTING_GO.values(), ids=LETTING_GO)
def test_the_deleter_is_called_once_whatever_comes_first(
    let_go: Callable[[caffe2.Tensor], object],
) -> None:
    block = Block()
    tensor = block.tensor()
    let_go(tensor)
    assert block.deleted == [block.address]
    tensor.FreeMemory()
    del tensor
    gc.collect()
    assert block.deleted == [block.address]


KEEPING: dict[str, Callable[[caffe2.Tensor], object]] = {
    "smaller": lambda t: t.Resize(2),
    "same size": lambda t: t.Resize(2, 2),
    "type that fits": lambda t: t.mutable_data("int32"),
    "shrink": lambda t: t.ShrinkTo(1),
    "copy that fits": lambda t: t.CopyFrom(filled((4,))),
    "reshape": lambda t: t.Reshape((2, 2)),
    "reserve that fits": lambda t: t.ReserveSpace(4),
}


@pytest.mark.parametrize("keep", KEEPING.values(), ids=KEEPING)
def test_the_deleter_waits_while_the_memory_is_used(
    keep: Callable[[caffe2.Tensor], object],
) -> None:
    block = Block()
    tensor = block.tensor()
    keep(tensor)
    assert block.deleted == []
    assert tensor.storage().data_ptr() == block.address
    del tensor
    gc.collect()
    assert block.deleted == [block.address]


def test_the_deleter_waits_for_the_last_tensor() -> None:
    block = Block()
    tensor = block.tensor()
    alias, same, aten = tensor.Alias(), tensor.UnsafeSharedInstance(), at.Tensor(tensor)
    tensor.FreeMemory()
    assert same.storage_initialized() is False
    assert aten.numel() == 4
    assert block.deleted == []
    alias.ShareData(filled((4,)))
    assert block.deleted == [block.address]


@pytest.mark.parametrize(
    "take",
    [
        lambda t: t.data(),
        lambda t: t.mutable_data("float32")[1:3],
        lambda t: t.numpy(),
        lambda t: t.to_torch(),
        lambda t: memoryview(t),
        lambda t: np.from_dlpack(t),
        lambda t: at.Tensor(t).slice(0, 1, 2),
    ],
    ids=["data", "mutable_data", "numpy", "torch", "memoryview", "DLPack", "at view"],
)
def test_the_deleter_waits_for_views(take: Callable[[caffe2.Tensor], Any]) -> None:
    block = Block()
    tensor = block.tensor()
    view = take(tensor)
    del tensor
    gc.collect()
    assert block.deleted == []
    del view
    gc.collect()
    assert block.deleted == [block.address]


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


@isolated
def test_the_deleter_of_a_cycle_is_called() -> None:
    """The collector may take a closure apart before the memory that it deletes."""
    deleted: list[int] = []

    class Owner:
        def __init__(self) -> None:
            self.array = np.zeros(4, np.float32)
            self.tensor = caffe2.Tensor((4,), "cpu")
            self.tensor.ShareExternalPointer(
                self.array.ctypes.data, "float32", 0, lambda address: self.delete(address)
            )

        def delete(self, address: int) -> None:
            assert address == self.array.ctypes.data
            deleted.append(address)

    for _ in range(100):
        Owner()
    gc.collect()
    assert len(deleted) == 100


def test_the_deleter_at_the_exit_of_the_interpreter() -> None:
    code = """
import numpy as np
from bridge import caffe2
array = np.zeros(4, np.float32)
tensor = caffe2.Tensor((4,), "cpu")
tensor.ShareExternalPointer(array.ctypes.data, "float32", 0, lambda address: None)
view, alias = tensor.data(), tensor.Alias()
print("end")
"""
    assert run_python(code) == "end\n"


def test_a_deleter_that_raises_is_not_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    tensor = caffe2.Tensor((4,), "cpu")
    block = Block()

    def fail(address: int) -> None:
        block.delete(address)
        raise ValueError("the deleter's own")

    tensor.ShareExternalPointer(block.address, "float32", 0, fail)
    tensor.FreeMemory()
    assert tensor.storage_initialized() is False
    del tensor
    gc.collect()
    assert block.deleted == [block.address]
    assert [type(report.exc_value) for report in reported] == [ValueError]
