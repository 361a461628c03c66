# SPDX-License-Identifier: Apache-2.0
"""What a `caffe2.Tensor` says about itself."""

import contextlib
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2

from .state import filled, refused


def test_a_typed_tensor_says_sizes_type_bytes_and_device() -> None:
    tensor = filled((2, 3, 4), "int16")
    assert tensor.dim() == 3
    assert tensor.numel() == 24
    assert tensor.sizes() == (2, 3, 4)
    assert tensor.strides() == (12, 4, 1)
    assert [tensor.size(i) for i in range(3)] == [2, 3, 4]
    assert [tensor.stride(i) for i in range(3)] == [12, 4, 1]
    assert tensor.dtype() is c10.int16 or tensor.dtype() == c10.int16
    assert tensor.itemsize() == 2
    assert tensor.nbytes() == 48
    assert tensor.capacity_nbytes() == 48
    assert tensor.is_contiguous() is True
    assert tensor.storage_initialized() is True
    assert tensor.dtype_initialized() is True
    assert tensor.defined() is True
    assert tensor.GetDevice() == c10.Device("cpu")
    assert tensor.GetDeviceType() == c10.DeviceType.CPU
    assert len(tensor) == 2
    assert tuple(tensor.shape) == (2, 3, 4)
    assert isinstance(tensor.unsafeGetTensorImpl(), c10.TensorImpl)


def test_an_untyped_tensor_has_sizes_and_no_bytes() -> None:
    tensor = caffe2.Tensor((2, 3), "cpu")
    assert not tensor.dtype()
    assert bool(tensor.dtype()) is False
    assert isinstance(tensor.dtype(), c10.TypeMeta)
    assert tensor.dtype() == caffe2.Tensor("cpu").dtype()
    assert tensor.itemsize() == 0
    assert tensor.nbytes() == 0
    assert tensor.capacity_nbytes() == 0
    assert tensor.dtype_initialized() is False
    assert tensor.storage_initialized() is False
    assert tensor.is_contiguous() is True
    assert tensor.IsType("float32") is False
    assert tuple(tensor.shape) == (2, 3)


@pytest.mark.parametrize(
    "spelling",
    [c10.float64, "float64", np.float64, np.dtype("float64"), torch.float64, float],
    ids=repr,
)
def test_is_type_takes_every_spelling(spelling: Any) -> None:
    assert filled((2,), spelling).IsType("float64") is True
    assert filled((2,), "float64").IsType(spelling) is True
    assert filled((2,), "float32").IsType(spelling) is False


def test_the_storage_says_address_bytes_and_who_shares_it() -> None:
    tensor = filled((2, 3))
    storage = tensor.storage()
    assert isinstance(storage, c10.Storage)
    assert storage.data_ptr() == tensor.raw_data() == tensor.data().ctypes.data
    assert storage.nbytes() == storage.capacity() == 24
    assert storage.use_count() == 1
    assert storage.unique() is True
    assert storage.device() == "cpu"
    assert storage.IsType("float32") is True
    alias = tensor.Alias()
    assert tensor.storage().use_count() == alias.storage().use_count() == 2
    assert tensor.storage().unique() is False
    shared = tensor.UnsafeSharedInstance()
    assert shared.storage().use_count() == 2  # one TensorImpl counts once
    del alias
    assert tensor.storage().use_count() == 1


def test_axes_count_from_the_end_too() -> None:
    tensor = caffe2.Tensor((2, 3, 4), "cpu")
    assert [tensor.size(i) for i in (-3, -2, -1)] == [2, 3, 4]
    assert [tensor.stride(i) for i in (-3, -2, -1)] == [12, 4, 1]
    assert [tensor.canonical_axis_index(i) for i in range(-3, 3)] == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("axis", [3, -4, 100, -(2**62), 2**62])
@pytest.mark.parametrize("method", ["size", "stride", "canonical_axis_index", "dim32"])
def test_axes_that_are_not_there_are_refused(method: str, axis: int) -> None:
    tensor = caffe2.Tensor((2, 3, 4), "cpu")
    with refused(tensor):
        getattr(tensor, method)(axis)
    scalar = caffe2.Tensor((), "cpu")
    with refused(scalar):
        getattr(scalar, method)(0 if axis > 0 else -1)


def test_dim32_refuses_sizes_beyond_32_bits() -> None:
    assert caffe2.Tensor((2, 2**31 - 2), "cpu").dim32(1) == 2**31 - 2
    for large in (2**31, 2**40):
        tensor = caffe2.Tensor((2, large), "cpu")
        assert tensor.dim32(0) == 2
        with refused(tensor):
            tensor.dim32(1)


def test_products_of_sizes_from_to_and_between_axes_are_right() -> None:
    tensor = caffe2.Tensor((2, 3, 5, 7), "cpu")
    assert [tensor.size_from_dim(k) for k in range(5)] == [210, 105, 35, 7, 1]
    assert [tensor.size_to_dim(k) for k in range(5)] == [1, 2, 6, 30, 210]
    # Exclusive of both, whichever comes first.
    assert tensor.size_between_dim(0, 3) == tensor.size_between_dim(3, 0) == 15
    assert tensor.size_between_dim(0, 2) == 3
    assert tensor.size_between_dim(1, 2) == 1
    assert tensor.size_between_dim(2, 2) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.size_to_dim(3),
        lambda t: t.size_to_dim(-1),
        lambda t: t.size_from_dim(-1),
        lambda t: t.size_between_dim(0, 2),
        lambda t: t.size_between_dim(2, 0),
        lambda t: t.size_between_dim(-1, 1),
    ],
)
def test_products_of_sizes_that_are_not_there_are_refused(call: Any) -> None:
    tensor = caffe2.Tensor((2, 3), "cpu")
    with refused(tensor):
        call(tensor)


def test_sizes_are_a_view_that_keeps_its_values() -> None:
    tensor = filled((2, 3))
    sizes, strides = tensor.sizes(), tensor.strides()
    assert isinstance(sizes, c10.ArrayRef)
    tensor.Resize(7, 5, 3)
    assert sizes == (2, 3)
    assert strides == (3, 1)
    assert tensor.sizes() == (7, 5, 3)
    extended = filled((2, 3))
    sizes = extended.sizes()
    extended.Extend(3)
    assert sizes == (2, 3)
    assert extended.sizes() == (5, 3)
    sizes = extended.sizes()
    del extended
    assert sizes.vec() == [5, 3]
    assert np.empty(sizes).shape == (5, 3)
    assert torch.empty(*sizes).shape == (5, 3)


def test_debug_string_names_type_and_sizes() -> None:
    text = filled((2, 3)).DebugString()
    assert "float" in text
    assert "4" in text
    assert "2" in text
    assert "3" in text
    assert isinstance(caffe2.Tensor((5,), "cpu").DebugString(), str)


def test_repr_works_in_every_state() -> None:
    freed = filled((2, 3))
    freed.FreeMemory()
    assert "float32" in repr(filled((2, 3)))
    for tensor in (caffe2.Tensor(), caffe2.Tensor("cpu"), caffe2.Tensor((2,), "cpu"), freed):
        assert "Tensor" in repr(tensor)
    assert "2, 3" in repr(freed)


def test_len_refuses_a_scalar() -> None:
    with pytest.raises(TypeError):
        len(caffe2.Tensor((), "cpu"))
    assert len(caffe2.Tensor((0, 4), "cpu")) == 0
    assert len(caffe2.Tensor("cpu")) == 0


@pytest.mark.parametrize(
    "name",
    [
        *["numel", "sizes", "strides", "dim", "itemsize", "nbytes", "capacity_nbytes"],
        *["GetDevice", "GetDeviceType", "storage", "is_contiguous", "storage_initialized"],
    ],
)
def test_an_undefined_tensor_answers_or_refuses(name: str) -> None:
    """What has no answer is an error, and nothing crashes."""
    tensor = caffe2.Tensor()
    with contextlib.suppress(c10.EnforceNotMet):
        getattr(tensor, name)()
    assert not tensor.defined()


def test_metadata_follows_the_impl() -> None:
    """Two wrappers that hold the same `TensorImpl` see each other's data and metadata."""
    tensor = filled((2, 3))
    shared, aten = tensor.UnsafeSharedInstance(), at.Tensor(tensor)
    tensor.Resize(3, 2)
    assert shared.sizes() == aten.sizes() == (3, 2)
    shared.mutable_data("int32")[:] = range(6)
    assert tensor.IsType("int32")
    assert aten.tolist() == [[0, 1], [2, 3], [4, 5]]
    aten.resize_(2, 2)
    assert tensor.sizes() == shared.sizes() == (2, 2)
