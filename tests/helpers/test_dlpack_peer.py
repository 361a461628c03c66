# SPDX-License-Identifier: Apache-2.0
"""The producer and the consumer of the tests, held against NumPy and torch, without the package."""

import gc
import weakref

import numpy as np
import pytest
import torch

from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_consumer import ExchangeTable, TableError, take, take_capsule
from tests.helpers.dlpack_producer import (
    ManagedTensor,
    OldProducer,
    Producer,
    StreamProducer,
    TensorSpec,
    stray_deletes,
)
from tests.helpers.dlpack_table import FUNCTIONS, Table, producer_type


def array() -> np.ndarray:
    return np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("versioned", [True, False])
def test_torch_reads_a_capsule_of_ours(versioned: bool) -> None:
    source = array()[::2, 1:]
    managed = ManagedTensor(TensorSpec.of_array(source), versioned=versioned)
    t = torch.from_dlpack(managed.capsule())
    assert t.data_ptr() == source.ctypes.data
    np.testing.assert_array_equal(t.numpy(), source)
    assert managed.deleted == 0
    del t
    assert managed.deleted == 1


@pytest.mark.parametrize("kind", [Producer, OldProducer, StreamProducer])
def test_torch_reads_each_signature(kind: type[Producer]) -> None:
    producer = kind(TensorSpec.of_array(array()))
    t = torch.from_dlpack(producer)
    assert t.tolist() == array().tolist()
    del t
    assert producer.deletions == [1]


def test_numpy_reads_the_flag() -> None:
    producer = Producer(TensorSpec.of_array(array(), flags=abi.READ_ONLY))
    assert not np.from_dlpack(producer).flags.writeable
    assert producer.calls[0]["max_version"] >= (1, 0)


@pytest.mark.parametrize("versioned", [True, False])
def test_an_unconsumed_capsule_calls_its_deleter(versioned: bool) -> None:
    managed = ManagedTensor(TensorSpec.of_array(array()), versioned=versioned)
    capsule = managed.capsule()
    assert abi.capsule_pointer(capsule, abi.capsule_name(capsule)) == managed.address
    del capsule
    assert managed.deleted == 1


def test_the_owner_goes_with_the_deleter() -> None:
    owner = torch.zeros(3)
    alive = weakref.ref(owner)
    managed = ManagedTensor(TensorSpec(0, (0,), (1,), owner=owner), versioned=True)
    del owner
    gc.collect()
    assert alive() is not None
    abi.DELETER(managed.struct.deleter)(managed.address)
    assert alive() is None
    assert managed.deleted == 1
    assert stray_deletes == []


@pytest.mark.parametrize("max_version", [None, (1, 3)])
def test_take_reads_an_array_of_numpy(max_version: tuple[int, int] | None) -> None:
    source = array()[::2, ::-1]
    taken = take(source, max_version=max_version)
    assert taken.shape == (2, 4)
    assert taken.strides == (8, -1)
    assert taken.address == source.ctypes.data
    assert taken.dtype == (abi.FLOAT, 32, 1)
    assert taken.device == (abi.CPU, 0)
    assert taken.data() == source.tobytes()
    assert (taken.version is None) == (max_version is None)
    taken.release()


def test_a_taken_capsule_is_renamed() -> None:
    capsule = array().__dlpack__(max_version=(1, 0))
    taken = take_capsule(capsule)
    assert abi.capsule_name(capsule) == abi.USED_VERSIONED_NAME
    taken.release()
    with pytest.raises(AssertionError, match="released before"):
        taken.release()


def test_torch_owner_is_released() -> None:
    t = torch.arange(6.0)
    alive = weakref.ref(t)
    taken = take(t)
    del t
    assert alive() is not None, "torch keeps the object for as long as its memory is lent"
    assert taken.data() == np.arange(6, dtype=np.float32).tobytes()
    taken.release()
    assert alive() is None


def test_the_table_of_torch_takes_and_borrows() -> None:
    table = ExchangeTable(torch.Tensor)
    assert table.version[0] == 1
    t = torch.arange(6, dtype=torch.int16).reshape(2, 3).t()
    taken = table.take(t)
    borrowed = table.borrow(t)
    for seen in (taken, borrowed):
        assert seen.shape == (3, 2)
        assert seen.strides == (1, 3)
        assert seen.dtype == (abi.INT, 16, 1)
        assert seen.address == t.data_ptr()
        assert seen.data() == t.numpy().tobytes()
    taken.release()
    assert table.work_stream((abi.CPU, 0)) is None


def test_table_of_torch_takes_and_allocates() -> None:
    table = ExchangeTable(torch.Tensor)
    allocated = table.allocate((2, 5), (abi.FLOAT, 64, 1))
    assert (allocated.shape, allocated.dtype) == ((2, 5), (abi.FLOAT, 64, 1))
    address = allocated.address
    t = table.give(allocated.surrender())
    assert isinstance(t, torch.Tensor)
    assert (t.data_ptr(), tuple(t.shape), t.dtype) == (address, (2, 5), torch.float64)
    with pytest.raises(TableError):
        table.allocate((2,), (abi.FLOAT, 64, 1), device=(99, 0))


def test_the_consumer_reads_a_table_of_ours() -> None:
    table = Table()
    producer = producer_type(table)(TensorSpec.of_array(array()[:, ::2]))
    reader = ExchangeTable(type(producer))
    taken = reader.take(producer)
    assert taken.strides == (4, 2)
    assert taken.data() == array()[:, ::2].tobytes()
    taken.release()
    assert producer.deletions == [1]
    assert reader.borrow(producer).data() == array()[:, ::2].tobytes()
    allocated = reader.allocate((2, 3))
    assert allocated.strides == (3, 1)
    reader.give(allocated.pointer)
    allocated.release()
    assert table.received == [allocated.pointer]
    assert reader.work_stream((abi.CPU, 0)) is None
    assert sorted(table.calls) == sorted(FUNCTIONS)
