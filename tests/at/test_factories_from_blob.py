# SPDX-License-Identifier: Apache-2.0
"""`at.from_blob`: memory from outside, by address or buffer, and its one release."""

import ctypes
import gc
import sys
import weakref
from array import array
from typing import Any

import numpy as np
import pytest

from bridge import at, c10, caffe2
from tests.helpers.ids import shown

from .comparing import ERRORS, address

REFUSALS = (*ERRORS, BufferError)


def buffers() -> list[Any]:
    """Six float32 values 0 … 5, in every kind of writable buffer."""
    values = np.arange(6, dtype=np.float32)
    return [
        values.copy(),
        array("f", values),
        bytearray(values.tobytes()),
        memoryview(values.copy()),
        (ctypes.c_float * 6)(*values),
    ]


@pytest.mark.parametrize("number", range(5))
def test_from_blob_shares_the_memory_of_a_buffer(number: int) -> None:
    buffer = buffers()[number]
    tensor = at.from_blob(buffer, (2, 3), options="float32")
    assert tensor.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert (tensor.dtype(), tensor.device()) == (c10.float32, "cpu")
    assert not tensor.readonly
    tensor.fill_(7)
    assert np.frombuffer(buffer, dtype=np.float32).tolist() == [7.0] * 6


def test_from_blob_shares_the_memory_at_an_address() -> None:
    memory = np.arange(6, dtype=np.float32)
    tensor = at.from_blob(address(memory), (2, 3))
    assert tensor.data_ptr() == address(memory)
    assert (tensor.dtype(), tensor.shape) == (c10.float32, (2, 3))
    assert tensor.storage().nbytes() == 24
    memory[0] = 9
    tensor[1, 2] = 8
    assert tensor.tolist() == [[9.0, 1.0, 2.0], [3.0, 4.0, 8.0]]
    assert memory.tolist() == [9.0, 1.0, 2.0, 3.0, 4.0, 8.0]


@pytest.mark.parametrize(
    "options", ["int16", c10.int16, np.int16, c10.dtype("int16").device("cpu")], ids=repr
)
def test_from_blob_takes_options_in_every_spelling(options: Any) -> None:
    memory = np.arange(4, dtype=np.int16)
    for tensor in [
        at.from_blob(address(memory), (4,), None, options),
        at.from_blob(address(memory), [4], options=options),
        at.from_blob(memory, (2, 2), options=options).view(4),
    ]:
        assert tensor.dtype() == c10.int16
        assert tensor.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("sizes", "strides"), [((3, 2), (1, 3)), ((2, 2), (3, 1)), ((4,), (0,)), ((2,), (5,)), ((), ())]
)
def test_from_blob_takes_strides(sizes: tuple[int, ...], strides: tuple[int, ...]) -> None:
    memory = np.arange(6, dtype=np.float32)
    expected = np.lib.stride_tricks.as_strided(memory, sizes, [4 * stride for stride in strides])
    for source in [memory, address(memory)]:
        tensor = at.from_blob(source, sizes, strides)
        assert tensor.strides() == strides
        np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ((7,), None),
        ((2, 4), None),
        ((2, 2), (5, 1)),
        ((2,), (-1,)),
        ((2**62,), None),
        ((2**40, 2**40), None),
        ((2, 2), (2**62, 1)),
        ((-1,), None),
        ((2, 3), (1,)),
        (("a",), None),
        (None, None),
    ],
    ids=repr,
)
def test_reaching_outside_a_buffer_is_refused(sizes: Any, strides: Any) -> None:
    memory = np.arange(6, dtype=np.float32)
    with pytest.raises(REFUSALS):
        at.from_blob(memory, sizes, strides, "float32")


def test_a_wider_type_than_the_buffer_holds_is_refused() -> None:
    with pytest.raises(REFUSALS):
        at.from_blob(bytearray(24), (6,), None, "float64")
    assert at.from_blob(bytearray(24), (3,), None, "float64").tolist() == [0.0] * 3


@pytest.mark.parametrize("source", [None, "text", 1.5, object(), -8], ids=shown)
def test_from_blob_refuses_sources_without_memory(source: Any) -> None:
    with pytest.raises((*REFUSALS, OverflowError)):
        at.from_blob(source, (2,))


def test_one_size_that_is_too_large_is_refused() -> None:
    with pytest.raises(c10.EnforceNotMet, match="4 bytes"):
        at.from_blob(bytearray(4), 100)


def test_an_integer_of_numpy_is_an_address() -> None:
    memory = np.arange(4, dtype=np.float32)
    tensor = at.from_blob(np.uint64(memory.ctypes.data), (4,))
    assert tensor.data_ptr() == memory.ctypes.data
    assert tensor.tolist() == memory.tolist()


def test_a_buffer_is_where_it_is() -> None:
    with pytest.raises(c10.EnforceNotMet, match="cpu"):
        at.from_blob(np.zeros(4, np.float32), (4,), device="cuda:0")
    assert at.from_blob(np.zeros(4, np.float32), (4,), device="cpu").device() == "cpu"


def test_the_null_address_is_refused_unless_there_are_no_elements() -> None:
    with pytest.raises(REFUSALS):
        at.from_blob(0, (2,))
    assert at.from_blob(0, (0, 3)).shape == (0, 3)


def test_read_only_buffers_stay_read_only() -> None:
    data = np.arange(2, dtype=np.float32).tobytes()
    kept = bytes(bytearray(data))
    try:
        tensor = at.from_blob(data, (2,), options="float32")
    except (RuntimeError, BufferError):
        return
    assert tensor.readonly
    with pytest.raises(c10.EnforceNotMet):
        tensor.fill_(7)
    assert data == kept


def test_a_buffer_stays_alive() -> None:
    memory = np.arange(6, dtype=np.float32)
    gone = weakref.ref(memory)
    tensor = at.from_blob(memory, (6,))
    view = tensor[2:4]
    del memory, tensor
    gc.collect()
    assert gone() is not None
    assert view.tolist() == [2.0, 3.0]
    del view
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("by_address", [True, False], ids=["address", "buffer"])
def test_the_deleter_is_called_once(by_address: bool) -> None:
    memory = np.arange(6, dtype=np.float32)
    calls: list[Any] = []
    tensor = at.from_blob(
        address(memory) if by_address else memory, (2, 3), deleter=lambda *args: calls.append(args)
    )
    shared = caffe2.Tensor(tensor)
    holders = [tensor[1], tensor.numpy(), tensor.to_torch(), memoryview(tensor)]
    del tensor
    gc.collect()
    assert calls == []
    del shared
    while holders:
        assert calls == []
        holders.pop()
        gc.collect()
    assert len(calls) == 1
    assert calls[0] == (address(memory),)


def test_the_deleter_is_called_when_the_tensor_gets_other_memory() -> None:
    memory = np.arange(6, dtype=np.float32)
    calls: list[int] = []
    tensor = at.from_blob(address(memory), (6,), deleter=calls.append)
    tensor.set_(at.zeros((2,)))
    gc.collect()
    assert calls == [address(memory)]
    assert tensor.tolist() == [0.0, 0.0]
    del tensor
    gc.collect()
    assert calls == [address(memory)]


def test_a_refused_call_leaves_the_memory_with_the_caller() -> None:
    memory = np.arange(6, dtype=np.float32)
    calls: list[int] = []
    with pytest.raises(REFUSALS):
        at.from_blob(address(memory), (2, 3), (1,), deleter=calls.append)
    gc.collect()
    assert calls == []


@pytest.mark.parametrize("deleter", [3, "text", object()], ids=["int", "str", "object"])
def test_a_deleter_must_be_callable(deleter: Any) -> None:
    memory = np.arange(6, dtype=np.float32)
    with pytest.raises((TypeError, RuntimeError)):
        at.from_blob(address(memory), (6,), deleter=deleter)


def test_a_deleter_that_raises_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    memory = np.arange(6, dtype=np.float32)

    def refuse(_: int) -> None:
        raise ValueError("no")

    tensor = at.from_blob(address(memory), (6,), deleter=refuse)
    del tensor
    gc.collect()
    assert [report.exc_type for report in reports] == [ValueError]
    reports.clear()
