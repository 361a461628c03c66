# SPDX-License-Identifier: Apache-2.0
"""Raw and typed allocation, alignment, and what allocators do that they should not."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bridge import at, c10, caffe2
from tests.caffe2.tensor.state import filled, refused, values
from tests.helpers.ids import shown

from .host_allocators import FailingAllocator, HostAllocator, RubbishAllocator


class Misaligned(HostAllocator):
    """Gives addresses one byte past those that are aligned."""

    def raw_allocate(self, nbytes: int) -> int:
        return super().raw_allocate(nbytes + 1) + 1

    def raw_deallocate(self, address: int) -> None:
        super().raw_deallocate(address - 1)


@pytest.mark.parametrize("alignment", [1, 8, 64, 256, 4096])
def test_memory_has_the_alignment_that_is_asked_for(alignment: int) -> None:
    allocator = c10.Allocator()
    allocator.alignment = alignment
    pointers = [allocator.allocate(n) for n in (1, 7, 100, 5000)]
    assert [pointer.address % alignment for pointer in pointers] == [0] * 4
    address = allocator.raw_allocate(33)
    assert address % alignment == 0
    allocator.raw_deallocate(address)


@pytest.mark.parametrize("alignment", [0, -8, 3, 48, 2**70, None, 1.5, "64", True])
def test_a_wrong_alignment_is_refused(alignment: Any) -> None:
    allocator = c10.Allocator()
    allocator.alignment = alignment
    with pytest.raises((c10.EnforceNotMet, MemoryError)):
        allocator.allocate(16)
    with pytest.raises((c10.EnforceNotMet, MemoryError)):
        allocator.raw_allocate(16)
    assert allocator.stats.allocations == 0


@pytest.mark.parametrize(
    ("dtype", "n", "nbytes"),
    [
        ("float32", 5, 20),
        ("complex128", 3, 48),
        (np.int16, 0, 0),
        (bool, 7, 7),
        (c10.float64, 1, 8),
    ],
)
def test_allocate_typed_gives_the_bytes_of_n_elements(dtype: Any, n: int, nbytes: int) -> None:
    for allocator in (c10.Allocator(), HostAllocator()):
        pointer = allocator.allocate_typed(dtype, n)
        assert pointer.nbytes == nbytes
        assert (pointer.address == 0) is (nbytes == 0)
        assert allocator.stats.allocated_bytes == nbytes
        del pointer
        assert allocator.stats.allocated_bytes == 0


def test_allocate_typed_refuses_objects_and_wrong_numbers_of_elements() -> None:
    allocator = c10.Allocator()
    with pytest.raises(TypeError, match="Python objects") as caught:
        allocator.allocate_typed("string", 3)
    assert isinstance(caught.value, c10.EnforceNotMet)
    for wrong in (("no type", 3), ("float32", "3"), ("float32", None), ("float32", 1.5)):
        with pytest.raises(TypeError):
            allocator.allocate_typed(*wrong)
    with pytest.raises(ValueError, match="negative"):
        allocator.allocate_typed("float32", -1)
    for n in (2**61, 2**62, 2**63 - 1, 2**64):
        with pytest.raises(MemoryError):
            allocator.allocate_typed("float64", n)
    assert allocator.stats.allocations == 0


@pytest.mark.parametrize("address", [None, "1", b"1", 1.5, True, [1], object()], ids=shown)
def test_only_addresses_are_taken_back(address: Any) -> None:
    with pytest.raises(TypeError, match="An address is an int"):
        c10.Allocator().raw_deallocate(address)


def test_an_address_is_taken_back_once() -> None:
    allocator = c10.Allocator()
    address = allocator.raw_allocate(10)
    allocator.raw_deallocate(address)
    for stranger in (address, address + 1, 2**70, -5):
        with pytest.raises(c10.EnforceNotMet, match="not a live address"):
            allocator.raw_deallocate(stranger)
    allocator.raw_deallocate(0)
    assert allocator.stats.allocated_bytes == 0


def test_memory_that_is_not_aligned_for_the_type_is_refused(
    keep_cpu_allocator: c10.Allocator,
) -> None:
    allocator = Misaligned()
    tensor, alias = filled((2,)), caffe2.Tensor((3,), "cpu")
    c10.SetAllocator("cpu", allocator)
    for dtype in ("complex64", "float64", "int16"):
        with refused(tensor, alias, match="not aligned for"):
            caffe2.Tensor((5,), "cpu").mutable_data(dtype)
    with refused(tensor, alias, match="not aligned for"):
        tensor.Extend(9)
    with refused(tensor, alias, match="not aligned for"):
        alias.CopyFrom(tensor)
    assert not allocator.live, "what was refused went back"
    alias.mutable_data("int8")[:] = 3  # bytes lie anywhere
    assert values(alias) == [3, 3, 3]
    c10.SetAllocator("cpu", keep_cpu_allocator)
    del alias
    gc.collect()
    assert not allocator.live


def test_elements_that_are_objects_come_from_python(keep_cpu_allocator: c10.Allocator) -> None:
    allocator = FailingAllocator(MemoryError("nothing left"))
    c10.SetAllocator("cpu", allocator)
    strings = caffe2.empty([3], "string")
    strings.mutable_data("string")[0] = b"x" * 1000
    strings.Extend(5)
    assert strings.Clone().data("string")[0] == b"x" * 1000
    with refused(strings, error=MemoryError):
        strings.mutable_data("float32")
    assert allocator.stats.allocations == 0


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_buffers_go_back_to_their_allocators_after_every_kind_of_growth(
    dtype: str, keep_cpu_allocator: c10.Allocator
) -> None:
    """Each of many buffers, made and freed in turns, goes back to its allocator."""
    allocators = [HostAllocator() for _ in range(3)]
    tensors: list[caffe2.Tensor] = []
    for turn in range(12):
        c10.SetAllocator("cpu", allocators[turn % 3])
        tensors.append(filled((4,), dtype))
        for tensor in tensors[-4:]:
            tensor.Extend(turn + 1)
            tensor.CopyFrom(filled((turn + 2,), dtype))
        tensors[turn // 2].ReserveSpace(50 + turn)
        tensors[turn // 3].FreeMemory()
    c10.SetAllocator("cpu", keep_cpu_allocator)
    del tensor, tensors
    gc.collect()
    for allocator in allocators:
        assert not allocator.live
        assert allocator.freed
        assert allocator.stats.allocated_bytes == 0


def test_an_allocator_may_use_tensors_while_it_is_asked(
    keep_cpu_allocator: c10.Allocator,
) -> None:
    asking: list[caffe2.Tensor] = []

    class Meddler(HostAllocator):
        def raw_allocate(self, nbytes: int) -> int:
            c10.SetAllocator("cpu", keep_cpu_allocator)
            asking[0].Resize(1)
            return super().raw_allocate(nbytes)

    tensor = filled((4,))
    asking.append(tensor)
    allocator = Meddler()
    c10.SetAllocator("cpu", allocator)
    tensor.Resize(9)
    tensor.mutable_data("float32")
    assert tensor.numel() * 4 <= tensor.capacity_nbytes()
    assert len(tensor.data()) == tensor.numel()
    del tensor, asking[:]
    gc.collect()
    assert not allocator.live
    assert at.zeros(3).tolist() == [0, 0, 0]


def test_true_is_refused_as_an_address(keep_cpu_allocator: c10.Allocator) -> None:
    c10.SetAllocator("cpu", RubbishAllocator(True))
    with pytest.raises(c10.EnforceNotMet, match="returned True"):
        at.empty((3,), "int8")


class Counted(c10.Allocator):
    """Takes its memory from the built-in allocator, and waits or allocates before it does."""

    def __init__(self, before: Callable[[], object]) -> None:
        self.before = before

    def raw_allocate(self, nbytes: int) -> int:
        self.before()
        return super().raw_allocate(nbytes)


class Uncounted(HostAllocator):
    """The same with memory of its own."""

    def __init__(self, before: Callable[[], object]) -> None:
        super().__init__()
        self.before = before

    def raw_allocate(self, nbytes: int) -> int:
        self.before()
        return super().raw_allocate(nbytes)


every_kind = pytest.mark.parametrize("kind", [Counted, Uncounted])


@every_kind
def test_statistics_count_threads_that_allocate_at_the_same_time(kind: Any) -> None:
    barrier = threading.Barrier(4)
    allocator = kind(barrier.wait)
    kept: list[c10.DataPtr] = []
    threads = [
        threading.Thread(target=lambda: kept.append(allocator.allocate(100))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = allocator.stats
    assert (stats.allocations, stats.allocated_bytes, stats.peak_bytes) == (4, 400, 400)
    kept.clear()
    assert (stats.allocations, stats.allocated_bytes) == (4, 0)


@every_kind
def test_statistics_count_an_allocation_inside_another(kind: Any) -> None:
    inner: list[c10.DataPtr] = []

    def once() -> None:
        allocator.before = lambda: None
        inner.append(allocator.allocate(30))

    allocator = kind(once)
    outer = allocator.allocate(100)
    stats = allocator.stats
    assert (stats.allocations, stats.allocated_bytes) == (2, 130)
    del outer
    assert stats.allocated_bytes == 30
    inner.clear()
    assert stats.allocated_bytes == 0


def test_an_allocation_that_raises_is_not_counted() -> None:
    def fail() -> None:
        raise OSError("gone")

    allocator = Counted(fail)
    with pytest.raises(OSError, match="gone"):
        allocator.allocate(8)
    assert allocator.stats.allocations == 0
    allocator.before = lambda: None
    allocator.raw_deallocate(allocator.raw_allocate(8))
    assert allocator.allocate(8).nbytes == 8
    assert (allocator.stats.allocations, allocator.stats.allocated_bytes) == (2, 0)
