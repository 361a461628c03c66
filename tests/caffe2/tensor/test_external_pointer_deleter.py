# SPDX-License-Identifier: Apache-2.0
"""The deleter of `ShareExternalPointer`: called once, with the address, after its last use."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bridge import at, caffe2
from tests.helpers.isolate import isolated, run_python

from .external_block import Block
from .state import filled

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


def test_a_deleter_does_no_harm_at_the_exit_of_the_interpreter() -> None:
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
