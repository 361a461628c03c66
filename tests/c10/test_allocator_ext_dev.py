# SPDX-License-Identifier: Apache-2.0
"""A host allocator set for `ext_dev`: the rules of devices, without a device."""

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, c10, caffe2
from bridge.c10.allocator import register_default_allocator
from tests.helpers.isolate import isolated

from .host_allocators import FailingAllocator, HostAllocator

REFUSALS = (RuntimeError, TypeError, ValueError, BufferError, NotImplementedError)


def test_get_allocator_returns_the_allocator_that_was_set(ext_dev_allocator: HostAllocator) -> None:
    assert c10.GetAllocator("ext_dev") is ext_dev_allocator
    assert c10.GetAllocator(c10.DeviceType.ExtDev) is ext_dev_allocator
    assert c10.GetAllocator("cpu") is not ext_dev_allocator


@pytest.mark.parametrize("device", ["vulkan", "metal"])
def test_a_device_without_an_allocator_is_refused(device: str) -> None:
    with pytest.raises(RuntimeError):
        c10.GetAllocator(device)
    with pytest.raises(RuntimeError):
        at.empty((2, 3), device=device)
    with pytest.raises(RuntimeError):
        caffe2.Tensor((2, 3), device).mutable_data("float32")


def test_at_tensors_and_their_views_live_on_the_device(ext_dev_allocator: HostAllocator) -> None:
    tensor = at.empty((2, 3), device="ext_dev")
    address = tensor.data_ptr()
    assert tensor.device() == "ext_dev"
    assert tensor.storage().device() == "ext_dev"
    assert address in ext_dev_allocator.live
    assert ext_dev_allocator.live[address] >= 24
    assert tensor.__dlpack_device__()[0] == c10.DeviceType.ExtDev
    assert isinstance(repr(tensor), str)
    view = tensor[1:]
    assert view.device() == "ext_dev"
    assert view.data_ptr() == address + 12
    del tensor
    gc.collect()
    assert ext_dev_allocator.freed == []
    del view
    gc.collect()
    assert ext_dev_allocator.freed == [address]


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize(
    "source",
    [np.arange(6.0), np.arange(6.0).astype(">f8")],
    ids=["native", "foreign"],
)
def test_a_copy_to_the_device_is_made_on_the_way(
    ext_dev_allocator: HostAllocator, source: Any, copy: bool | None
) -> None:
    with bridge.audit() as log:
        tensor = bridge.from_dlpack(source, device="ext_dev", copy=copy)
    assert tensor.device() == "ext_dev"
    assert tensor.tolist() == source.tolist()
    # (of foreign byte order the host has to have one of its own first)
    assert log.copied_bytes == (48 if source.dtype.isnative else 96)
    with bridge.audit() as log:
        stays = bridge.from_dlpack(tensor, device="ext_dev", copy=copy)
    assert log.copied_bytes == (48 if copy else 0)
    assert (stays.data_ptr() == tensor.data_ptr()) is (copy is None)


def test_caffe2_tensors_allocate_on_the_device_at_first_use(
    ext_dev_allocator: HostAllocator,
) -> None:
    tensor = caffe2.Tensor((2, 3), "ext_dev")
    assert tensor.GetDevice() == "ext_dev"
    assert tensor.GetDeviceType() == c10.DeviceType.ExtDev
    assert not ext_dev_allocator.live
    address = tensor.raw_mutable_data("float32")
    assert list(ext_dev_allocator.live) == [address]
    assert tensor.raw_mutable_data("float32") == address
    assert tensor.raw_data() == address
    assert at.Tensor(tensor).device() == "ext_dev"
    del tensor
    gc.collect()
    assert ext_dev_allocator.freed == [address]


@pytest.mark.parametrize(
    "read",
    [
        lambda tensor: tensor.tolist(),
        lambda tensor: tensor.numpy().tolist(),
        lambda tensor: tensor.__array__().tolist(),
        lambda tensor: memoryview(tensor).tolist(),
        lambda tensor: tensor.cpu().tolist(),
        lambda tensor: tensor.to_torch().tolist(),
        lambda tensor: tensor.clone().cpu().tolist(),
        lambda tensor: (tensor + 0).tolist(),
    ],
    ids=["tolist", "numpy", "array", "memoryview", "cpu", "to_torch", "clone", "add"],
)
def test_memory_of_the_device_is_read_right_or_refused(
    read: Callable[[at.Tensor], Any], ext_dev_allocator: HostAllocator
) -> None:
    tensor = at.empty((2, 3), device="ext_dev")
    values = np.arange(6, dtype=np.float32)
    ctypes.memmove(tensor.data_ptr(), values.ctypes.data, values.nbytes)
    try:
        read_values = read(tensor)
    except REFUSALS:
        return
    assert read_values == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_memory_of_the_device_is_not_exported_as_cpu_memory(
    ext_dev_allocator: HostAllocator,
) -> None:
    tensor = at.empty((2, 3), device="ext_dev")
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(1, 0), copy=False)


def test_a_swapped_allocator_frees_the_tensors_that_it_made(
    ext_dev_allocator: HostAllocator,
) -> None:
    old = at.empty((2, 3), device="ext_dev")
    other = HostAllocator()
    c10.SetAllocator("ext_dev", other)
    new = at.empty((2, 3), device="ext_dev")
    addresses = (old.data_ptr(), new.data_ptr())
    assert list(ext_dev_allocator.live) == [addresses[0]]
    assert list(other.live) == [addresses[1]]
    del old, new
    gc.collect()
    assert ext_dev_allocator.freed == [addresses[0]]
    assert other.freed == [addresses[1]]


def test_a_failed_allocation_on_the_device_leaves_the_tensor_usable(
    ext_dev_allocator: HostAllocator,
) -> None:
    tensor = caffe2.Tensor((2, 3), "ext_dev")
    c10.SetAllocator("ext_dev", FailingAllocator(MemoryError("full")))
    with pytest.raises(MemoryError):
        at.empty((2, 3), device="ext_dev")
    with pytest.raises(MemoryError):
        tensor.raw_mutable_data("float32")
    assert not tensor.storage_initialized()
    c10.SetAllocator("ext_dev", ext_dev_allocator)
    assert tensor.raw_mutable_data("float32") in ext_dev_allocator.live


def test_stats_are_per_allocator(ext_dev_allocator: HostAllocator) -> None:
    cpu_bytes = c10.GetAllocator("cpu").stats.allocated_bytes
    tensor = at.empty((1000,), device="ext_dev")
    assert tensor.nbytes() == 4000
    assert ext_dev_allocator.stats.allocated_bytes >= 4000
    assert c10.GetAllocator("cpu").stats.allocated_bytes == cpu_bytes
    del tensor
    gc.collect()
    assert ext_dev_allocator.stats.allocated_bytes == 0


def kept(device: str) -> c10.Allocator:
    """The allocator of `device` that its provider makes, in a process that may keep it."""
    register_default_allocator(c10.Device(device).type, lambda index: HostAllocator())
    made = c10.GetAllocator(device)
    assert c10.GetAllocator(device) is made
    return made


@isolated
def test_a_device_without_a_number_means_all_of_its_type() -> None:
    provided = kept("ext_dev:2")
    one, two, all_of_them = HostAllocator(), HostAllocator(), HostAllocator()
    c10.SetAllocator("ext_dev:1", one)
    assert c10.GetAllocator("ext_dev:2") is provided
    c10.SetAllocator("ext_dev", two)
    assert [c10.GetAllocator(f"ext_dev:{i}") for i in range(3)] == [two] * 3
    c10.SetAllocator("ext_dev:1", one)
    assert [c10.GetAllocator(f"ext_dev:{i}") for i in range(3)] == [two, one, two]
    c10.SetAllocator(c10.DeviceType.ExtDev, all_of_them)
    assert [c10.GetAllocator(f"ext_dev:{i}") for i in range(3)] == [all_of_them] * 3


@pytest.mark.parametrize("first", ["cuda:0", c10.Device("cuda:0"), (2, 0)], ids=repr)
@isolated
def test_the_first_cuda_device_is_not_all_of_them(first: Any) -> None:
    provided = kept("cuda:1")
    mine = HostAllocator()
    c10.SetAllocator(first, mine)
    assert c10.GetAllocator("cuda:0") is mine
    assert c10.GetAllocator("cuda:1") is provided
    c10.SetAllocator("cuda", mine)
    assert c10.GetAllocator("cuda:1") is mine
