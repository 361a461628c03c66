# SPDX-License-Identifier: Apache-2.0
"""`mutable_data`, `data` and the raw addresses: views without a copy, and types that change."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2
from tests.helpers.ids import shown

from .state import filled, refused, values

POD_TYPES = [
    *["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"],
    *["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn"],
]


@pytest.mark.parametrize("dtype", POD_TYPES)
def test_mutable_data_is_a_writable_flat_view(dtype: str) -> None:
    tensor = caffe2.Tensor((2, 3), "cpu")
    view = tensor.mutable_data(dtype)
    assert isinstance(view, np.ndarray)
    assert view.shape == (6,)
    assert view.flags.writeable
    assert view.dtype == c10.TypeMeta.Make(dtype).numpy
    assert view.ctypes.data == tensor.raw_data() == tensor.storage().data_ptr()
    assert view.ctypes.data % 64 == 0
    view[:] = [0, 1, 1, 0, 1, 0]
    assert tensor.data().astype(np.complex128).tolist() == [0, 1, 1, 0, 1, 0]
    assert np.shares_memory(tensor.data(), view)
    assert tensor.numpy().shape == (2, 3)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        (c10.float32, "float32"),
        (np.float32, "float32"),
        (np.dtype("<f4"), "float32"),
        (torch.float32, "float32"),
        (bool, "bool"),
        (int, "int64"),
        (float, "float64"),
        (complex, "complex128"),
    ],
    ids=repr,
)
def test_data_takes_every_spelling_of_a_type(spelling: Any, name: str) -> None:
    tensor = caffe2.Tensor((2,), "cpu")
    assert tensor.mutable_data(spelling).dtype == name
    assert tensor.data(spelling).dtype == name
    assert tensor.raw_mutable_data(spelling) == tensor.raw_data()


def test_data_is_the_same_with_and_without_its_type() -> None:
    tensor = filled((3,))
    assert tensor.data().tolist() == tensor.data("float32").tolist() == [1.0, 2.0, 3.0]
    assert tensor.data().ctypes.data == tensor.data("float32").ctypes.data == tensor.raw_data()
    for wrong in ("float64", "int32", "string"):
        with refused(tensor) as caught:
            tensor.data(wrong)
        assert "float32" in str(caught.value)
        assert wrong in str(caught.value)


def test_data_is_refused_where_there_is_no_memory() -> None:
    unallocated = caffe2.Tensor((3,), "cpu")
    for call in (unallocated.data, lambda: unallocated.data("float32"), unallocated.raw_data):
        with refused(unallocated, match="mutable_data"):
            call()
    with refused(unallocated):
        unallocated.raw_mutable_data()
    freed = filled((3,))
    freed.FreeMemory()
    for call in (freed.data, lambda: freed.data("float32"), freed.raw_data):
        with refused(freed, match="mutable_data"):
            call()
    untyped = caffe2.Tensor((0,), "cpu")
    for call in (untyped.data, lambda: untyped.data("float32"), untyped.raw_data):
        with refused(untyped):
            call()


@pytest.mark.parametrize("dims", [(0,), (0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int64", "string"])
def test_data_of_no_elements_is_an_empty_view_at_address_0(
    dims: tuple[int, ...], dtype: str
) -> None:
    tensor = caffe2.Tensor(dims, "cpu")
    assert len(tensor.mutable_data(dtype)) == 0
    assert tensor.IsType(dtype)
    assert len(tensor.data()) == len(tensor.data(dtype)) == 0
    assert tensor.raw_data() == tensor.raw_mutable_data() == tensor.raw_mutable_data(dtype) == 0
    kept = filled((4,), dtype)
    capacity = kept.capacity_nbytes()
    kept.Resize(dims)
    assert len(kept.data()) == 0
    assert kept.raw_data() == 0
    assert kept.capacity_nbytes() == capacity


def test_raw_mutable_data_allocates() -> None:
    tensor = caffe2.Tensor((4,), "cpu")
    address = tensor.raw_mutable_data("int32")
    assert address % 64 == 0
    assert address == tensor.raw_data() == tensor.data().ctypes.data
    assert tensor.raw_mutable_data() == address
    tensor.FreeMemory()
    assert tensor.raw_mutable_data() != 0
    assert tensor.IsType("int32")


def test_the_same_type_keeps_the_data() -> None:
    tensor = filled((4,))
    address = tensor.raw_data()
    assert tensor.mutable_data("float32").tolist() == [1.0, 2.0, 3.0, 4.0]
    assert tensor.raw_data() == address


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "float16", "float32"])
def test_a_type_that_fits_keeps_the_buffer(dtype: str) -> None:
    tensor = filled((4,))
    address = tensor.raw_data()
    view = tensor.mutable_data(dtype)
    assert view.ctypes.data == address
    assert len(view) == 4
    assert tensor.capacity_nbytes() == 16
    assert view.tobytes() == np.arange(1, 5, dtype=np.float32).tobytes()[: view.nbytes]


def test_a_type_that_does_not_fit_is_given_to_every_sharer() -> None:
    tensor = filled((4,))
    alias = tensor.Alias()
    view = tensor.mutable_data("float64")
    assert tensor.capacity_nbytes() == alias.capacity_nbytes() == 32
    assert alias.raw_data() == tensor.raw_data() == view.ctypes.data
    assert alias.IsType("float32")
    assert tensor.storage().use_count() == 2
    view[:] = 0
    assert values(alias) == [0.0] * 4


def test_a_change_of_type_forgets_the_offset() -> None:
    whole = at.arange(8, dtype="float32")
    tensor = caffe2.Tensor(whole.slice(0, 2, 6))
    assert tensor.mutable_data("int32").ctypes.data == whole.data_ptr()
    assert tensor.sizes() == (4,)


CHANGES: dict[str, Callable[[caffe2.Tensor], object]] = {
    "resize up": lambda t: t.Resize(100),
    "free": lambda t: t.FreeMemory(),
    "larger type": lambda t: t.mutable_data("complex128"),
    "extend": lambda t: t.Extend(50),
    "shrink": lambda t: t.ShrinkTo(1),
    "reserve": lambda t: t.ReserveSpace(50),
    "external": lambda t: t.ShareExternalPointer(np.zeros(3)),
    "reinitialize": lambda t: caffe2.ReinitializeTensor(t, (9,), "int8"),
    "storage reset": lambda t: t.storage().reset(),
    "strings": lambda t: t.mutable_data("string"),
    "share": lambda t: t.ShareData(caffe2.Tensor((3,), [7.0, 8.0, 9.0])),
    "copy of another type": lambda t: t.CopyFrom(caffe2.Tensor((2,), [1, 2])),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_view_stays_valid_whatever_the_tensor_does(
    change: Callable[[caffe2.Tensor], object],
) -> None:
    tensor = filled((3,))
    view, flat = tensor.data(), tensor.mutable_data("float32")
    change(tensor)
    churn = [np.full(3, 99.0, np.float32) for _ in range(100)]
    assert view.tolist() == flat.tolist() == [1.0, 2.0, 3.0]
    flat[1] = -2
    assert view.tolist() == [1.0, -2.0, 3.0]
    del tensor, churn
    gc.collect()
    assert view.tolist() == [1.0, -2.0, 3.0]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_view_of_strings_stays_valid(change: Callable[[caffe2.Tensor], object]) -> None:
    tensor = filled((3,), "string")
    view = tensor.mutable_data("string")
    change(tensor)
    assert list(view) == [b"1", b"2", b"3"]
    view[0] = b"mine"
    del tensor
    gc.collect()
    assert list(view) == [b"mine", b"2", b"3"]


def test_a_view_does_not_count_as_a_share_of_the_storage() -> None:
    tensor = filled((3,))
    views = [tensor.data(), tensor.mutable_data("float32"), tensor.data()[1:]]
    assert tensor.storage().use_count() == 1
    assert tensor.storage().unique() is True
    tensor.ShrinkTo(2)
    tensor.ReserveSpace(9)
    assert [view.tolist() for view in views] == [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [2.0, 3.0]]


def test_memory_goes_with_the_last_view() -> None:
    gc.collect()  # of what tests before left, now and not in between
    tensor = filled((1000,))
    stats = c10.GetAllocator("cpu").stats
    view = tensor.data()
    held = stats.allocated_bytes
    address = view.ctypes.data
    del tensor
    gc.collect()
    assert c10.GetAllocator("cpu").stats.allocated_bytes == held
    part = view[10:12]
    del view
    gc.collect()
    assert part.ctypes.data == address + 40
    assert part.tolist() == [11.0, 12.0]
    del part
    gc.collect()
    assert c10.GetAllocator("cpu").stats.allocated_bytes <= held - 4000


@pytest.mark.parametrize("nonsense", ["no type", object(), 3, "float33"], ids=shown)
def test_objects_that_are_not_types_are_refused(nonsense: Any) -> None:
    tensor = filled((2,))
    with refused(tensor, error=(c10.EnforceNotMet, TypeError)):
        tensor.mutable_data(nonsense)


@pytest.mark.cuda
def test_data_on_cuda_is_a_view_on_the_device() -> None:
    tensor = caffe2.Tensor((2, 3), "cuda")
    view = tensor.mutable_data("float32")
    assert isinstance(view, at.Tensor)
    assert view.sizes() == (6,)
    assert view.data_ptr() == tensor.raw_data() == tensor.storage().data_ptr()
    torch.from_dlpack(view).fill_(5)
    assert tensor.data().to_torch().cpu().tolist() == [5.0] * 6
    assert tensor.storage().use_count() == 1
    tensor.ShrinkTo(1)
    assert view.to_torch().cpu().tolist() == [5.0] * 6
    with refused(tensor):
        tensor.data("float64")
    tensor.FreeMemory()
    with refused(tensor):
        tensor.data()
