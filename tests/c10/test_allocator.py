# SPDX-License-Identifier: Apache-2.0
"""`c10.Allocator`: the built-in one, subclasses in Python, swaps under live tensors."""

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bridge import at, c10, caffe2

from .host_allocators import HostAllocator


def test_the_builtin_allocator_gives_aligned_memory() -> None:
    allocator = c10.GetAllocator("cpu")
    assert isinstance(allocator, c10.Allocator)
    assert c10.GetAllocator(c10.CPU) is allocator
    assert allocator.alignment >= 64
    address = allocator.raw_allocate(256)
    assert isinstance(address, int)
    assert address % 64 == 0
    ctypes.memset(address, 7, 256)
    allocator.raw_deallocate(address)


@pytest.mark.parametrize("nbytes", [1, 63, 64, 65, 1000, 4096, 2**20 + 1])
def test_allocate_gives_writable_memory_of_the_asked_size(nbytes: int) -> None:
    pointer = c10.GetAllocator("cpu").allocate(nbytes)
    assert pointer.nbytes == nbytes
    assert isinstance(pointer.address, int)
    assert pointer.address % 64 == 0
    ctypes.memset(pointer.address, 0xFF, nbytes)


def test_data_ptr_frees_itself_once() -> None:
    allocator = HostAllocator()
    pointer = allocator.allocate(100)
    address = pointer.address
    assert list(allocator.live) == [address]
    assert allocator.live[address] >= 100
    assert allocator.freed == []
    del pointer
    gc.collect()
    assert allocator.freed == [address]
    assert not allocator.live


def test_data_ptr_outlives_the_name_of_its_allocator() -> None:
    allocator = HostAllocator()
    freed = allocator.freed
    pointer = allocator.allocate(100)
    address = pointer.address
    del allocator
    gc.collect()
    ctypes.memset(address, 1, 100)
    del pointer
    gc.collect()
    assert freed == [address]


@pytest.mark.parametrize("count", [1, 3, 17, 1000, 65537])
def test_cpu_memory_is_64_byte_aligned(count: int) -> None:
    tensors = [at.empty((count,), dtype) for dtype in ["int8", "float32", "complex128"] * 3]
    tensors += [at.zeros((count,), "int8"), at.rand(count), at.arange(count), at.empty((count, 3))]
    tensors += [tensor.clone() for tensor in tensors]
    assert [tensor.data_ptr() % 64 for tensor in tensors] == [0] * len(tensors)
    assert caffe2.empty((count,), "int8").raw_data() % 64 == 0
    assert caffe2.Tensor((count,), "cpu").raw_mutable_data("int16") % 64 == 0


@pytest.mark.parametrize("make", [HostAllocator, lambda: c10.GetAllocator("cpu")])
def test_stats_count_allocations_bytes_and_the_peak(
    make: Callable[[], c10.Allocator], keep_cpu_allocator: c10.Allocator
) -> None:
    allocator = make()
    c10.SetAllocator("cpu", allocator)
    gc.collect()
    bytes_before = allocator.stats.allocated_bytes
    allocations_before = allocator.stats.allocations
    tensor = at.empty((100_000,), "float32")
    assert allocator.stats.allocated_bytes - bytes_before >= 400_000
    assert allocator.stats.peak_bytes >= allocator.stats.allocated_bytes
    assert allocator.stats.allocations > allocations_before
    second = caffe2.empty((100_000,), "float32")
    assert allocator.stats.allocated_bytes - bytes_before >= 800_000
    peak = allocator.stats.peak_bytes
    assert peak >= 800_000
    del tensor, second
    gc.collect()
    assert allocator.stats.allocated_bytes == bytes_before
    assert allocator.stats.peak_bytes == peak


def test_views_and_wrappers_allocate_nothing() -> None:
    tensor = at.empty((100, 100))
    stats = c10.GetAllocator("cpu").stats
    before = (stats.allocated_bytes, stats.allocations)
    views = [tensor.t(), tensor[1:], tensor.view(-1), tensor.alias(), caffe2.Tensor(tensor)]
    stats = c10.GetAllocator("cpu").stats
    assert len(views) == 5
    assert (stats.allocated_bytes, stats.allocations) == before


def test_a_python_allocator_serves_the_cpu(cpu_allocator: HostAllocator) -> None:
    assert c10.GetAllocator("cpu") is cpu_allocator
    tensor = at.ones((10, 10))
    assert tensor.data_ptr() in cpu_allocator.live
    assert cpu_allocator.live[tensor.data_ptr()] >= 400
    other = caffe2.Tensor((5,), [1, 2, 3, 4, 5])
    assert other.raw_data() in cpu_allocator.live
    array = tensor.numpy()
    address = tensor.data_ptr()
    del tensor
    gc.collect()
    assert address in cpu_allocator.live
    assert array.sum() == 100
    del array
    gc.collect()
    assert cpu_allocator.freed == [address]


MAKERS: dict[str, Callable[[at.Tensor], at.Tensor]] = {
    "empty": lambda x: at.empty((3,)),
    "zeros": lambda x: at.zeros((3,)),
    "full": lambda x: at.full((3,), 2.0),
    "empty_strided": lambda x: at.empty_strided((2,), (3,)),
    "arange": lambda x: at.arange(3),
    "eye": lambda x: at.eye(3),
    "rand": lambda x: at.rand(3),
    "randn": lambda x: at.randn(3),
    "tensor": lambda x: at.tensor([1.0, 2.0]),
    "ones_like": lambda x: at.ones_like(x),
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.t().contiguous(),
    "to": lambda x: x.to("float64"),
    "reshape": lambda x: x.t().reshape(6),
    "caffe2.empty": lambda x: at.Tensor(caffe2.empty((3,), "float32")),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_new_tensors_come_from_the_allocator(
    make: Callable[[at.Tensor], at.Tensor], cpu_allocator: HostAllocator
) -> None:
    tensor = make(at.ones((2, 3)))
    assert tensor.data_ptr() in cpu_allocator.live
    tensor.resize_(1000)
    assert tensor.data_ptr() in cpu_allocator.live
    address = tensor.data_ptr()
    del tensor
    gc.collect()
    assert address in cpu_allocator.freed


def test_memory_from_outside_is_not_the_allocators(cpu_allocator: HostAllocator) -> None:
    memory = np.zeros(4, dtype=np.float32)
    tensor = at.from_blob(memory, (4,))
    assert tensor.data_ptr() not in cpu_allocator.live
    del tensor
    gc.collect()
    assert cpu_allocator.freed == []


def test_each_buffer_goes_back_to_the_allocator_that_gave_it(
    keep_cpu_allocator: c10.Allocator,
) -> None:
    first, second = HostAllocator(), HostAllocator()
    c10.SetAllocator("cpu", first)
    old = at.full((100,), 1.0)
    old_address = old.data_ptr()
    c10.SetAllocator("cpu", second)
    new = at.full((100,), 2.0)
    new_address = new.data_ptr()
    assert (old_address in first.live, new_address in second.live) == (True, True)
    old.resize_(10_000)
    assert first.freed == [old_address]
    assert old.data_ptr() in second.live
    assert old[:100].tolist() == [1.0] * 100
    c10.SetAllocator("cpu", keep_cpu_allocator)
    del old, new
    gc.collect()
    assert new_address in second.freed
    assert not first.live
    assert not second.live


def test_an_allocator_lives_as_long_as_its_tensors(keep_cpu_allocator: c10.Allocator) -> None:
    allocator = HostAllocator()
    freed = allocator.freed
    c10.SetAllocator("cpu", allocator)
    tensor = at.full((100,), 3.0)
    address = tensor.data_ptr()
    c10.SetAllocator("cpu", keep_cpu_allocator)
    del allocator
    gc.collect()
    assert tensor.tolist() == [3.0] * 100
    del tensor
    gc.collect()
    assert freed == [address]


def test_an_error_while_freeing_is_reported_not_raised(
    monkeypatch: pytest.MonkeyPatch, keep_cpu_allocator: c10.Allocator
) -> None:
    class Stubborn(HostAllocator):
        def raw_deallocate(self, address: int) -> None:
            super().raw_deallocate(address)
            raise ValueError("will not free")

    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    allocator = Stubborn()
    c10.SetAllocator("cpu", allocator)
    tensor = at.zeros((2, 3))
    address = tensor.data_ptr()
    c10.SetAllocator("cpu", keep_cpu_allocator)
    del tensor
    gc.collect()
    assert allocator.freed == [address]
    assert [report.exc_type for report in reports] == [ValueError]
    reports.clear()


@pytest.mark.parametrize("allocator", [3, "cpu", object(), HostAllocator])
def test_only_allocators_can_be_set(allocator: Any, keep_cpu_allocator: c10.Allocator) -> None:
    with pytest.raises(TypeError):
        c10.SetAllocator("cpu", allocator)
    assert c10.GetAllocator("cpu") is keep_cpu_allocator
