# SPDX-License-Identifier: Apache-2.0
"""Allocations that cannot be met raise, and leave every tensor as it was."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

from bridge import at, c10, caffe2

from .host_allocators import FailingAllocator, HostAllocator, RubbishAllocator

TOO_LARGE = 2**46  # float64 elements: 2**49 bytes, past the address space of any machine.
RUBBISH = [None, "text", 1.5, -1, 0, 2**70, [1], b"\0" * 8]
REFUSALS = (TypeError, ValueError, OverflowError, MemoryError, RuntimeError)


def set_of_failing_allocations() -> dict[str, Callable[[], object]]:
    """Calls that need memory that no machine has."""
    return {
        "at.empty": lambda: at.empty((TOO_LARGE,), "float64"),
        "at.zeros": lambda: at.zeros((TOO_LARGE,), "float64"),
        "at.full": lambda: at.full((TOO_LARGE,), 1.0, "float64"),
        "at.empty_strided": lambda: at.empty_strided((2,), (TOO_LARGE,), "float64"),
        "caffe2.empty": lambda: caffe2.empty((TOO_LARGE,), "float64"),
        "mutable_data": lambda: caffe2.Tensor((TOO_LARGE,), "cpu").mutable_data("float64"),
        "raw_mutable_data": lambda: caffe2.Tensor((TOO_LARGE,), "cpu").raw_mutable_data("float64"),
        "clone": lambda: at.zeros((1,), "float64").expand(TOO_LARGE).clone(),
        "allocate": lambda: c10.GetAllocator("cpu").allocate(TOO_LARGE * 8),
    }


@pytest.mark.parametrize("name", set_of_failing_allocations())
def test_an_allocation_that_cannot_be_met_is_a_memory_error(name: str) -> None:
    gc.collect()
    before = c10.GetAllocator("cpu").stats.allocated_bytes
    with pytest.raises(MemoryError):
        set_of_failing_allocations()[name]()
    gc.collect()
    assert c10.GetAllocator("cpu").stats.allocated_bytes == before


def test_a_failed_resize_leaves_the_tensor_as_it_was() -> None:
    tensor = at.full((2, 3), 4.0)
    shared = caffe2.Tensor(tensor)
    address = tensor.data_ptr()
    with pytest.raises(MemoryError):
        tensor.resize_(TOO_LARGE)
    assert (tensor.shape, tensor.strides(), tensor.data_ptr()) == ((2, 3), (3, 1), address)
    assert tensor.tolist() == [[4.0] * 3] * 2
    assert shared.sizes() == (2, 3)
    assert tensor.storage().nbytes() == 24


def test_a_failed_mutable_data_leaves_the_tensor_as_it_was() -> None:
    tensor = caffe2.Tensor((TOO_LARGE,), "cpu")
    with pytest.raises(MemoryError):
        tensor.mutable_data("float64")
    assert tensor.sizes() == (TOO_LARGE,)
    assert not tensor.storage_initialized()
    assert not tensor.dtype_initialized()
    tensor.Resize(2, 3)
    tensor.mutable_data("float64")[:] = 1
    assert tensor.data().tolist() == [1.0] * 6


@pytest.mark.parametrize(
    "error", [MemoryError("full"), ValueError("boom"), OSError("gone")], ids=repr
)
def test_an_allocator_that_raises_leaves_every_tensor_as_it_was(
    error: Exception, keep_cpu_allocator: c10.Allocator
) -> None:
    tensor = at.full((2, 3), 4.0)
    c10.SetAllocator("cpu", FailingAllocator(error))
    expected = (MemoryError,) if type(error) is MemoryError else (type(error), *REFUSALS)
    with pytest.raises(expected):
        at.empty((2, 3))
    with pytest.raises(expected):
        tensor.resize_(100)
    with pytest.raises(expected):
        caffe2.Tensor((2, 3), "cpu").mutable_data("float32")
    c10.SetAllocator("cpu", keep_cpu_allocator)
    assert tensor.tolist() == [[4.0] * 3] * 2
    assert at.zeros((2,)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("rubbish", RUBBISH, ids=repr)
def test_an_allocator_that_returns_rubbish_is_refused(
    rubbish: Any, keep_cpu_allocator: c10.Allocator
) -> None:
    tensor = at.full((2, 3), 4.0)
    c10.SetAllocator("cpu", RubbishAllocator(rubbish))
    with pytest.raises(REFUSALS):
        at.empty((2, 3))
    with pytest.raises(REFUSALS):
        tensor.resize_(100)
    with pytest.raises(REFUSALS):
        caffe2.Tensor((2, 3), "cpu").mutable_data("float32")
    assert tensor.tolist() == [[4.0] * 3] * 2
    assert tensor.shape == (2, 3)


@pytest.mark.parametrize("nbytes", [-1, 2**63, 2**70, 2**62])
def test_sizes_that_are_negative_or_too_large_are_refused(nbytes: int) -> None:
    with pytest.raises(REFUSALS):
        c10.GetAllocator("cpu").allocate(nbytes)


def test_a_copy_whose_source_is_changed_by_its_allocator_is_refused() -> None:
    """The elements that the source has by then are not those that there is room for."""
    source = caffe2.Tensor([4], [1.0, 2.0, 3.0, 4.0])
    target = caffe2.Tensor([2], [5, 6])

    class Meddler(HostAllocator):
        def raw_allocate(self, nbytes: int) -> int:
            address = super().raw_allocate(nbytes)
            if len(self.live) == 1:
                source.Extend(100_000)
            return address

    before = c10.GetAllocator("cpu")
    c10.SetAllocator("cpu", Meddler())
    try:
        with pytest.raises(c10.EnforceNotMet, match="while it was being copied"):
            target.CopyFrom(source)
    finally:
        c10.SetAllocator("cpu", before)
    assert target.data().tolist() == [5, 6]
