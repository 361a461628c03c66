# SPDX-License-Identifier: Apache-2.0
"""The C exchange table that both wrappers offer: all five functions, by the ctypes consumer."""

import ctypes
import gc
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from tests.helpers import dlpack_structs as abi
from tests.helpers.check import check_tensor
from tests.helpers.dlpack_consumer import ExchangeTable, TableError, take
from tests.helpers.dlpack_producer import ManagedTensor, TensorSpec
from tests.helpers.element_types import BY_NAME, ELEMENT_TYPES, ElementType
from tests.helpers.isolate import isolated

both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])


def six(wrap: type) -> Any:
    return wrap(at.arange(6, dtype="float32").view(2, 3))


def spec(**fields: Any) -> TensorSpec:
    return TensorSpec.of_array(np.arange(6, dtype=np.float32).reshape(2, 3), **fields)


@both_wrappers
def test_the_table_is_on_the_type(wrap: type) -> None:
    table = ExchangeTable(wrap)
    assert table.version[0] == 1
    assert table.version >= (1, 3)
    assert ExchangeTable(type(six(wrap))).address == table.address
    struct = abi.DLPackExchangeAPI.from_address(table.address)
    for name, _ in abi.DLPackExchangeAPI._fields_[2:]:
        assert getattr(struct, name), name


@both_wrappers
def test_take_and_borrow_describe_the_tensor(wrap: type) -> None:
    x = six(wrap)
    table = ExchangeTable(wrap)
    taken, borrowed = table.take(x), table.borrow(x)
    assert taken.address == borrowed.address == take(x).address
    assert taken.shape == borrowed.shape == (2, 3)
    assert taken.data() == borrowed.data() == np.arange(6, dtype=np.float32).tobytes()
    taken.release()


def test_take_says_read_only() -> None:
    x = bridge.from_dlpack(b"abc")
    taken = ExchangeTable(at.Tensor).take(x)
    assert taken.readonly
    taken.release()


@both_wrappers
def test_take_holds_the_memory(wrap: type) -> None:
    managed = ManagedTensor(spec(), versioned=True)
    x = wrap(bridge.from_dlpack(managed.capsule()))
    taken = ExchangeTable(wrap).take(x)
    del x
    gc.collect()
    assert managed.deleted == 0
    assert taken.data() == np.arange(6, dtype=np.float32).tobytes()
    taken.release()
    assert managed.deleted == 1


@both_wrappers
def test_borrow_takes_no_reference(wrap: type) -> None:
    managed = ManagedTensor(spec(), versioned=True)
    x = wrap(bridge.from_dlpack(managed.capsule()))
    ExchangeTable(wrap).borrow(x)
    del x
    assert managed.deleted == 1


@both_wrappers
@pytest.mark.parametrize("function", ["take", "borrow"])
@isolated
def test_tensors_without_exchangeable_memory_are_refused(wrap: type, function: str) -> None:
    read = getattr(ExchangeTable(wrap), function)
    strings = ["a", "bc"]
    with pytest.raises(BufferError):
        read(bridge.asarray(strings) if wrap is at.Tensor else caffe2.Tensor([2], strings))
    if wrap is caffe2.Tensor:
        for x in (caffe2.Tensor(), caffe2.Tensor([2, 3], "cpu")):
            with pytest.raises((BufferError, c10.EnforceNotMet)):
                read(x)


@both_wrappers
def test_give_makes_a_tensor_of_the_wrapper(wrap: type) -> None:
    """managed_tensor_to_py_object: the struct becomes a tensor of this very wrapper."""
    managed = ManagedTensor(spec(), versioned=True)
    x = ExchangeTable(wrap).give(managed.address)
    assert type(x) is wrap
    check_tensor(x, (2, 3), address=managed.struct.dl_tensor.data)
    del x
    assert managed.deleted == 1


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_give_every_element_type(element: ElementType) -> None:
    data = element.sample_bytes(4)
    memory = np.frombuffer(bytearray(data), np.uint8)
    fields = {"shape": (4,), "code": element.code, "bits": element.bits}
    managed = ManagedTensor(TensorSpec.of_array(memory, **fields), versioned=True)
    x = ExchangeTable(at.Tensor).give(managed.address)
    check_tensor(x, (4,), element, address=memory.ctypes.data, data=data)


def test_give_keeps_read_only() -> None:
    managed = ManagedTensor(spec(flags=abi.READ_ONLY), versioned=True)
    x = ExchangeTable(at.Tensor).give(managed.address)
    assert x.readonly
    with pytest.raises(c10.EnforceNotMet):
        x.fill_(1)


@pytest.mark.parametrize(
    "fields",
    [
        {"version": (2, 0)},
        {"address": None},
        {"ndim": -1},
        {"shape": (2**40, 2**40)},
        {"shape": (-2, 3)},
        {"lanes": 4},
        {"code": 99},
        {"device": (9999, 0)},
    ],
    ids=str,
)
@both_wrappers
@isolated
def test_give_refuses_wrong_structs_and_deletes_them(wrap: type, fields: dict[str, Any]) -> None:
    managed = ManagedTensor(spec(**fields), versioned=True)
    with pytest.raises(BufferError):
        ExchangeTable(wrap).give(managed.address)
    assert managed.deleted == 1, "the tensor is handed over also where it is refused"


@isolated
def test_give_caffe2_wants_contiguous() -> None:
    source = np.arange(6, dtype=np.float32).reshape(2, 3).T
    managed = ManagedTensor(TensorSpec.of_array(source), versioned=True)
    with pytest.raises((BufferError, c10.EnforceNotMet)):
        ExchangeTable(caffe2.Tensor).give(managed.address)


@both_wrappers
@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_allocate_makes_aligned_memory_of_each_type(wrap: type, element: ElementType) -> None:
    allocated = ExchangeTable(wrap).allocate((2, 3), element.dlpack)
    assert allocated.shape == (2, 3)
    assert allocated.strides == (3, 1)
    assert allocated.dtype == element.dlpack
    assert allocated.device == (abi.CPU, 0)
    assert allocated.address % 64 == 0
    assert not allocated.readonly
    ctypes.memset(allocated.address, 1, 6 * element.itemsize)
    allocated.release()


@both_wrappers
def test_allocate_takes_all_shapes(wrap: type) -> None:
    table = ExchangeTable(wrap)
    for shape in ((), (0,), (3, 0, 2), (1,) * 70, (1000, 1000)):
        allocated = table.allocate(shape)
        assert allocated.shape == shape
        allocated.release()


@both_wrappers
def test_give_takes_allocated_memory(wrap: type) -> None:
    table = ExchangeTable(wrap)
    allocated = table.allocate((2, 3), (abi.INT, 64, 1))
    ctypes.memset(allocated.address, 0, 48)
    x = table.give(allocated.surrender())
    assert type(x) is wrap
    check_tensor(x, (2, 3), BY_NAME["int64"], address=allocated.address, data=bytes(48))


@both_wrappers
@pytest.mark.parametrize(
    ("shape", "dtype", "device"),
    [
        ((-1,), (abi.FLOAT, 32, 1), (abi.CPU, 0)),
        ((2**40, 2**40), (abi.FLOAT, 32, 1), (abi.CPU, 0)),
        ((2**50,), (abi.FLOAT, 64, 1), (abi.CPU, 0)),
        ((2,), (abi.FLOAT, 31, 1), (abi.CPU, 0)),
        ((2,), (abi.FLOAT, 32, 4), (abi.CPU, 0)),
        ((2,), (99, 32, 1), (abi.CPU, 0)),
        ((2,), (abi.FLOAT, 32, 1), (9999, 0)),
    ],
    ids=str,
)
@isolated
def test_allocate_reports_an_error_with_kind_and_message(
    wrap: type, shape: tuple[int, ...], dtype: tuple[int, int, int], device: tuple[int, int]
) -> None:
    with pytest.raises(TableError) as caught:
        ExchangeTable(wrap).allocate(shape, dtype, device)
    assert caught.value.kind
    assert caught.value.message


@both_wrappers
def test_work_stream_of_the_cpu_is_null(wrap: type) -> None:
    assert ExchangeTable(wrap).work_stream((abi.CPU, 0)) is None


def test_subclasses_inherit_the_table() -> None:
    class Mine(at.Tensor):
        pass

    x = Mine(at.ones(3))
    taken = ExchangeTable(Mine).take(x)
    assert taken.shape == (3,)
    taken.release()


def test_torch_memory_goes_through_both_tables_at_one_address() -> None:
    """torch's table in, ours out, ours in again, torch's out: one address."""
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    ours, theirs = ExchangeTable(at.Tensor), ExchangeTable(torch.Tensor)
    x = ours.give(theirs.take(t).surrender())
    check_tensor(x, (2, 3), address=t.data_ptr())
    again = theirs.give(ours.take(x).surrender())
    assert again.data_ptr() == t.data_ptr()
    again[1, 2] = -5.0
    assert t[1, 2].item() == x[1, 2].item() == -5.0
