# SPDX-License-Identifier: Apache-2.0
"""`c10.Storage`: what it says, who shares it, and taking memory from outside."""

import ctypes
import gc

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128", "bfloat16"])
def test_a_storage_says_address_bytes_device_and_type(dtype: str) -> None:
    tensor = at.empty((2, 3), dtype)
    storage = tensor.storage()
    assert isinstance(storage, c10.Storage)
    assert storage.data_ptr() == tensor.data_ptr() != 0
    assert storage.nbytes() == storage.capacity() == 6 * tensor.itemsize()
    assert storage.device() == "cpu"
    assert isinstance(storage.device(), c10.Device)
    assert storage.dtype() == getattr(c10, dtype)
    assert storage.IsType(dtype)
    assert storage.IsType(getattr(c10, dtype))
    assert not storage.IsType("uint64")


def test_the_storage_of_a_view_is_the_storage_of_its_base() -> None:
    tensor = at.empty((4, 5))
    view = tensor[2:, 1:]
    assert view.storage().data_ptr() == tensor.storage().data_ptr() == tensor.data_ptr()
    assert view.storage().nbytes() == 80
    assert view.data_ptr() == tensor.data_ptr() + 4 * 11


def test_both_wrappers_have_the_same_storage() -> None:
    tensor = at.empty((2, 3))
    shared = caffe2.Tensor(tensor)
    assert shared.storage().data_ptr() == tensor.data_ptr()
    assert caffe2.empty((2, 3), "float32").storage().nbytes() == 24


def test_a_lone_tensor_has_its_storage_for_itself() -> None:
    assert at.empty((2, 3)).storage().unique() is True
    assert at.empty((2, 3)).storage().use_count() == 1
    tensor = caffe2.empty((2, 3), "float32")
    assert tensor.storage().unique() is True
    storage = tensor.storage()
    assert storage.unique() is True


@pytest.mark.parametrize(
    "share",
    [
        lambda tensor: tensor.view(6),
        lambda tensor: tensor[0],
        lambda tensor: tensor.alias(),
        lambda tensor: tensor.detach(),
        lambda tensor: tensor.t(),
        lambda tensor: caffe2.Tensor(tensor).Alias(),
    ],
    ids=["view", "index", "alias", "detach", "t", "Alias"],
)
def test_use_count_counts_the_tensors_that_share(share) -> None:
    tensor = at.empty((2, 3))
    alone = tensor.storage().use_count()
    shared = share(tensor)
    gc.collect()
    assert tensor.storage().use_count() == alone + 1
    assert shared.storage().use_count() == alone + 1
    assert tensor.storage().unique() is False
    del shared
    gc.collect()
    assert tensor.storage().use_count() == alone
    assert tensor.storage().unique() is True


def test_copies_do_not_share() -> None:
    tensor = at.empty((2, 3))
    copies = [tensor.clone(), at.empty_like(tensor), caffe2.Tensor(tensor).Clone()]
    assert tensor.storage().unique()
    assert all(copied.storage().unique() for copied in copies)
    assert len({copied.storage().data_ptr() for copied in [tensor, *copies]}) == 4


def test_set_shares_the_storage() -> None:
    tensor, other = at.empty((2, 3)), at.zeros((5,))
    other.set_(tensor)
    assert other.storage().data_ptr() == tensor.storage().data_ptr()
    assert not tensor.storage().unique()


def test_a_storage_outlives_its_tensor() -> None:
    tensor = at.empty((1000,))
    tensor.fill_(7)
    storage = tensor.storage()
    address = tensor.data_ptr()
    del tensor
    gc.collect()
    garbage = [at.zeros((1000,)) for _ in range(10)]
    assert storage.data_ptr() == address
    assert all(other.data_ptr() != address for other in garbage)
    values = (ctypes.c_float * 1000).from_address(address)
    assert set(values) == {7.0}


def test_reset_frees_the_memory_once() -> None:
    released: list[int] = []
    memory = np.arange(6, dtype=np.float32)
    address = memory.ctypes.data
    tensor = at.from_blob(address, (2, 3), deleter=released.append)
    storage = tensor.storage()
    assert storage.data_ptr() == address
    storage.reset()
    gc.collect()
    assert released == [address]
    assert storage.data_ptr() == 0
    assert storage.nbytes() == storage.capacity() == 0
    del tensor, storage
    gc.collect()
    assert released == [address]


def test_a_tensor_whose_storage_was_reset_is_safe() -> None:
    tensor = at.full((2, 3), 5.0)
    tensor.storage().reset()
    for read in [tensor.tolist, tensor.numpy, tensor.clone, lambda: tensor.fill_(1.0)]:
        with pytest.raises((RuntimeError, BufferError)):
            read()
    assert isinstance(repr(tensor), str)


def test_a_view_outlives_the_reset() -> None:
    tensor = at.full((2, 3), 5.0)
    array, kept = tensor.numpy(), tensor.to_torch()
    tensor.storage().reset()
    gc.collect()
    garbage = [at.zeros((2, 3)) for _ in range(10)]
    assert len(garbage) == 10
    assert array.tolist() == [[5.0] * 3] * 2
    assert torch.equal(kept, torch.full((2, 3), 5.0))


def test_unique_storage_takes_memory_from_outside() -> None:
    released: list[int] = []
    memory = np.arange(4, dtype=np.int32)
    tensor = caffe2.empty((2, 2), "float32")
    storage = tensor.storage()
    address = memory.ctypes.data
    storage.UniqueStorageShareExternalPointer(address, "int32", 16, released.append)
    assert storage.data_ptr() == address
    assert storage.nbytes() == storage.capacity() == 16
    assert storage.dtype() == c10.int32
    assert storage.IsType("int32")
    assert released == []
    storage.reset()
    gc.collect()
    assert released == [address]


def test_memory_from_outside_without_a_deleter_is_not_freed() -> None:
    memory = np.arange(4, dtype=np.float32)
    tensor = at.empty((4,))
    tensor.storage().UniqueStorageShareExternalPointer(memory.ctypes.data, "float32", 16)
    assert tensor.tolist() == [0.0, 1.0, 2.0, 3.0]
    memory[1] = 9
    assert tensor.tolist() == [0.0, 9.0, 2.0, 3.0]
    del tensor
    gc.collect()
    assert memory.tolist() == [0.0, 9.0, 2.0, 3.0]


def test_shared_storage_refuses_memory_from_outside() -> None:
    released: list[int] = []
    memory = np.arange(4, dtype=np.float32)
    tensor = at.full((4,), 5.0)
    view = tensor[1:]
    storage = tensor.storage()
    before = storage.data_ptr()
    with pytest.raises(c10.EnforceNotMet):
        storage.UniqueStorageShareExternalPointer(
            memory.ctypes.data, "float32", 16, deleter=released.append
        )
    assert storage.data_ptr() == before
    assert tensor.tolist() == [5.0] * 4
    assert view.tolist() == [5.0] * 3
    del view
    gc.collect()
    storage.UniqueStorageShareExternalPointer(memory.ctypes.data, "float32", 16)
    assert tensor.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_too_little_memory_from_outside_is_safe() -> None:
    """A tensor never reads past the capacity that its new storage says it has."""
    memory = np.arange(64, dtype=np.float32)
    tensor = at.full((64,), 5.0)
    try:
        tensor.storage().UniqueStorageShareExternalPointer(memory.ctypes.data, "float32", 8)
    except RuntimeError:
        assert tensor.tolist() == [5.0] * 64
        return
    for read in [tensor.tolist, tensor.numpy, tensor.clone]:
        with pytest.raises((RuntimeError, BufferError)):
            read()


def test_a_storage_without_a_tensor_is_not_unique() -> None:
    storage = caffe2.empty((4,), "float32").storage()
    assert storage.use_count() == 0
    assert not storage.unique()
    with pytest.raises(c10.EnforceNotMet, match="unique"):
        storage.UniqueStorageShareExternalPointer(bytearray(16), "float32", 16)


def test_memory_from_outside_that_does_not_fit_is_refused() -> None:
    memory = bytearray(24)
    aligned = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    released: list[int] = []
    for device, src, error, why in (
        ("cpu", aligned + 1, ValueError, "aligned"),
        ("cpu", memoryview(memory)[3:], ValueError, "aligned"),
        ("cpu", memoryview(memory)[:12], ValueError, "12 bytes"),
        ("cpu", memoryview(memory)[::2], TypeError, "contiguous"),
        ("cpu", bytes(24), TypeError, "read-only"),
        ("metal", memory, BufferError, "on metal"),
        ("ext_dev", memory, BufferError, "on ext_dev"),
    ):
        tensor = caffe2.Tensor((4,), device)
        with pytest.raises(c10.EnforceNotMet, match=why) as caught:
            tensor.storage().UniqueStorageShareExternalPointer(src, "float32", 16, released.append)
        assert isinstance(caught.value, error)
        assert not tensor.storage_initialized()
    assert released == []
