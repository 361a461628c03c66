# SPDX-License-Identifier: Apache-2.0
"""Each allocation of a caffe2.Tensor's methods may fail; the tensor is then as before."""

from __future__ import annotations

import copy
import ctypes
from typing import Any

import pytest

from bridge import at, c10, caffe2
from tests.helpers.isolate import isolated
from tests.helpers.out_of_memory import Call, check_call, require_failing_allocations

require_failing_allocations()
MANY = (1,) * 9 + (2, 3, 4)  # more dimensions than a TensorImpl has room for in itself


def made() -> caffe2.Tensor:
    tensor = caffe2.Tensor([2, 3, 4], "cpu")
    tensor.mutable_data("float32")[:] = list(range(24))
    return tensor


def strings() -> caffe2.Tensor:
    tensor = caffe2.Tensor([3], "cpu")
    tensor.mutable_data("string")[:] = [b"a" * 40, b"bc" * 30, b""]
    return tensor


def resized() -> caffe2.Tensor:
    tensor = caffe2.Tensor([2], "cpu")
    tensor.Resize(2, 3)
    return tensor


def nothing() -> None:
    return None


SOURCE = resized()
SOURCE.mutable_data("float32")[:] = [1.0] * 6
STRINGS = strings()
FLOAT32 = c10.TensorOptions().dtype("float32")

CALLS: dict[str, Call] = {
    "by sizes": (nothing, lambda _: caffe2.Tensor([2, 3], "cpu")),
    "by values": (nothing, lambda _: caffe2.Tensor([3], [1.0, 2.0, 3.0])),
    "of an at.Tensor": (lambda: at.zeros(2, 3), caffe2.Tensor),
    "empty": (nothing, lambda _: caffe2.empty((2, 3), "float32")),
    "TensorCPUFromValues": (nothing, lambda _: caffe2.TensorCPUFromValues([2], [1, 2])),
    "Resize": (made, lambda t: t.Resize(5, 6, 7, 8)),
    "Resize to less": (made, lambda t: t.Resize(2)),
    "Resize to many": (made, lambda t: t.Resize(*MANY)),
    "ResizeLike": (made, lambda t: t.ResizeLike(SOURCE)),
    "mutable_data": (made, lambda t: t.mutable_data("int64")),
    "mutable_data again": (made, lambda t: t.mutable_data("float32")),
    "mutable_data of a new tensor": (resized, lambda t: t.mutable_data("float32")),
    "mutable_data of strings": (made, lambda t: t.mutable_data("string")),
    "strings to numbers": (strings, lambda t: t.mutable_data("float32")),
    "raw_mutable_data": (made, lambda t: t.raw_mutable_data("int64")),
    "raw_data": (made, lambda t: t.raw_data()),
    "data": (made, lambda t: t.data()),
    "data of strings": (strings, lambda t: t.data()),
    "Extend": (made, lambda t: t.Extend(100, 50)),
    "Extend strings": (strings, lambda t: t.Extend(10, 50)),
    "ExtendTo": (made, lambda t: t.ExtendTo(100, 50)),
    "ReserveSpace": (made, lambda t: t.ReserveSpace(100)),
    "ReserveSpace for strings": (strings, lambda t: t.ReserveSpace(100)),
    "ShrinkTo": (made, lambda t: t.ShrinkTo(1)),
    "Reshape": (made, lambda t: t.Reshape([4, 3, 2, 1])),
    "Reshape to many": (made, lambda t: t.Reshape(MANY)),
    "CopyFrom": (made, lambda t: t.CopyFrom(SOURCE)),
    "CopyFrom strings": (made, lambda t: t.CopyFrom(STRINGS)),
    "CopyFrom to strings": (strings, lambda t: t.CopyFrom(SOURCE)),
    "ShareData": (resized, lambda t: t.ShareData(SOURCE)),
    "ShareExternalPointer": (
        lambda: [resized(), bytearray(24)],
        lambda v: v[0].ShareExternalPointer(v[1], "float32", 24),
    ),
    "ShareExternalPointer by address": (
        lambda: [resized(), (ctypes.c_float * 6)()],
        lambda v: v[0].ShareExternalPointer(ctypes.addressof(v[1]), "float32", 24),
    ),
    "Clone": (made, lambda t: t.Clone()),
    "Clone strings": (strings, lambda t: t.Clone()),
    "Alias": (made, lambda t: t.Alias()),
    "UnsafeSharedInstance": (made, lambda t: t.UnsafeSharedInstance()),
    "FreeMemory": (made, lambda t: t.FreeMemory()),
    "FreeMemory of strings": (strings, lambda t: t.FreeMemory()),
    "swap": (lambda: [made(), resized()], lambda v: v[0].swap(v[1])),
    "metadata": (
        made,
        lambda t: (t.sizes(), t.shape, t.strides(), t.size(1), t.nbytes(), t.GetDevice()),
    ),
    "metadata, further": (
        made,
        lambda t: (
            (t.dim(), t.dim32(0), t.stride(0), t.numel(), t.itemsize()),
            (t.size_from_dim(1), t.size_to_dim(1), t.size_between_dim(0, 2)),
            (t.canonical_axis_index(-1), t.capacity_nbytes(), t.dtype(), t.device()),
            (t.IsType("float32"), t.GetDeviceType(), t.is_contiguous(), t.is_same(t)),
            (t.defined(), t.dtype_initialized(), t.storage_initialized()),
            t.unsafeGetTensorImpl(),
        ),
    ),
    "Shrink": (made, lambda t: t.Shrink(1)),
    "to_torch": (made, lambda t: t.to_torch()),
    "numpy": (made, lambda t: t.numpy()),
    "DebugString": (made, lambda t: t.DebugString()),
    "repr": (made, repr),
    "deepcopy": (made, copy.deepcopy),
    "pickle": (made, lambda t: t.__reduce_ex__(2)),
    "pickle strings": (strings, lambda t: t.__reduce_ex__(2)),
    "ReinitializeTensor": (made, lambda t: caffe2.ReinitializeTensor(t, [4, 5], FLOAT32)),
    "ReinitializeAndCopyFrom": (
        made,
        lambda t: caffe2.ReinitializeAndCopyFrom(t, FLOAT32, SOURCE),
    ),
    "Storage": (made, lambda t: (t.storage().data_ptr(), repr(t.storage()))),
}


@isolated
@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_memory_changes_nothing_and_leaks_nothing(name: str) -> None:
    wrong: list[Any] = check_call(CALLS[name])
    assert not wrong, "\n".join(wrong)
