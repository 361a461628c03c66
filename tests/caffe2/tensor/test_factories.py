# SPDX-License-Identifier: Apache-2.0
"""`empty`, `TensorCPUFromValues`, `ReinitializeTensor` and `ReinitializeAndCopyFrom`."""

from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2

from .state import filled, refused, state_of, values

FLOAT64_OPTIONS = [
    c10.dtype("float64"),
    c10.dtype("float64").device("cpu"),
    c10.device("cpu").dtype(float),
    c10.TensorOptions(dtype="float64", device="cpu"),
    "float64",
    np.float64,
    torch.float64,
    c10.float64,
]


@pytest.mark.parametrize("options", FLOAT64_OPTIONS, ids=repr)
def test_empty_takes_options_or_a_type(options: Any) -> None:
    tensor = caffe2.empty((2, 3), options)
    assert tensor.sizes() == (2, 3)
    assert tensor.IsType("float64")
    assert tensor.GetDevice() == "cpu"
    assert tensor.storage_initialized() is True
    assert tensor.capacity_nbytes() == 48
    assert tensor.raw_data() % 64 == 0
    tensor.data()[:] = 1


def test_empty_takes_keywords() -> None:
    tensor = caffe2.empty([4], dtype="int16", device="cpu")
    assert tensor.IsType("int16")
    assert tensor.nbytes() == 8
    with pytest.raises(TypeError):
        caffe2.empty((2,), dtpye="int16")


@pytest.mark.parametrize(("dims", "numel"), [((), 1), ((0,), 0), ((2, 0), 0), ((3,), 3)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "string"])
def test_empty_is_never_partially_initialised(
    dims: tuple[int, ...], numel: int, dtype: str
) -> None:
    tensor = caffe2.empty(dims, dtype)
    assert tensor.dtype_initialized() is True
    assert tensor.storage_initialized() is True
    assert len(tensor.data()) == numel
    assert (tensor.raw_data() == 0) is (numel == 0)


def test_empty_refuses_wrong_dims_and_types() -> None:
    for arguments in [((-1,), "float32"), ((2**40, 2**40), "float32"), ((2,), "float33")]:
        with pytest.raises(c10.EnforceNotMet):
            caffe2.empty(*arguments)


def test_tensor_cpu_from_values_copies_the_values() -> None:
    array = np.array([1, 2, 3, 4], np.int16)
    tensor = caffe2.TensorCPUFromValues((2, 2), array)
    assert tensor.IsType("int16")
    assert tensor.GetDeviceType() == c10.CPU
    array[:] = 0
    assert tensor.numpy().tolist() == [[1, 2], [3, 4]]
    assert values(caffe2.TensorCPUFromValues((2,), [1.5, 2.5])) == [1.5, 2.5]
    assert values(caffe2.TensorCPUFromValues((2,), [b"a", b"bc"])) == [b"a", b"bc"]
    assert caffe2.TensorCPUFromValues((), [5]).sizes() == ()
    for dims, count in [((3,), 2), ((0,), 1), ((2, 2), 3)]:
        with pytest.raises(c10.EnforceNotMet):
            caffe2.TensorCPUFromValues(dims, [1.0] * count)


@pytest.mark.parametrize("options", FLOAT64_OPTIONS, ids=repr)
def test_reinitialize_makes_memory_for_an_undefined_tensor(options: Any) -> None:
    tensor = caffe2.Tensor()
    caffe2.ReinitializeTensor(tensor, (2, 3), options)
    assert tensor.defined()
    assert tensor.sizes() == (2, 3)
    assert tensor.IsType("float64")
    assert tensor.storage_initialized() is True
    assert caffe2.Tensor().defined() is False


def test_reinitialize_keeps_memory_that_is_large_enough() -> None:
    tensor = filled((2, 3))
    same, address = tensor.UnsafeSharedInstance(), tensor.raw_data()
    before = c10.GetAllocator("cpu").stats.allocations
    for dims in [(2, 3), (6,), (3,), (0,), (2, 2)]:
        caffe2.ReinitializeTensor(tensor, dims, "float32")
        assert tensor.sizes() == dims
        assert tensor.storage().data_ptr() == address
        assert tensor.is_same(same)
    assert c10.GetAllocator("cpu").stats.allocations == before
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0]


def test_reinitialize_to_more_than_fits_makes_new_memory() -> None:
    tensor = filled((2,))
    same, alias = tensor.UnsafeSharedInstance(), tensor.Alias()
    caffe2.ReinitializeTensor(tensor, (3,), "float32")
    assert tensor.storage_initialized() is True
    assert tensor.capacity_nbytes() == 12
    assert same.sizes() == (3,)
    assert values(alias) == [1.0, 2.0]


def test_reinitialize_with_another_type_is_another_tensor() -> None:
    tensor = filled((2,))
    same, alias = tensor.UnsafeSharedInstance(), tensor.Alias()
    caffe2.ReinitializeTensor(tensor, (2,), "int32")
    assert tensor.IsType("int32")
    assert not tensor.is_same(same)
    assert values(same) == values(alias) == [1.0, 2.0]
    assert tensor.storage().use_count() == 1


def test_reinitialize_makes_memory_for_an_untyped_or_freed_tensor() -> None:
    untyped = caffe2.Tensor((2,), "cpu")
    caffe2.ReinitializeTensor(untyped, (2,), "int32")
    assert len(untyped.data("int32")) == 2
    freed = filled((2,))
    freed.FreeMemory()
    caffe2.ReinitializeTensor(freed, (2,), "float32")
    assert freed.storage_initialized() is True
    assert freed.capacity_nbytes() == 8


@pytest.mark.parametrize("dims", [(-1,), (2**40, 2**40), (2**63,)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_reinitialize_refuses_wrong_dims_and_types(dims: tuple[int, ...], dtype: str) -> None:
    for tensor in (filled((2, 3)), caffe2.Tensor((2,), "cpu"), caffe2.Tensor()):
        with refused(tensor):
            caffe2.ReinitializeTensor(tensor, dims, dtype)


def test_reinitialize_and_copy_from_takes_sizes_and_values() -> None:
    source = filled((2, 3), "int64")
    tensor = caffe2.Tensor()
    caffe2.ReinitializeAndCopyFrom(tensor, "cpu", source)
    assert tensor.sizes() == (2, 3)
    assert values(tensor) == values(source)
    address = tensor.raw_data()
    caffe2.ReinitializeAndCopyFrom(tensor, c10.device("cpu"), filled((2,), "int64", first=7))
    assert tensor.raw_data() == address
    assert values(tensor) == [7, 8]
    untyped = caffe2.Tensor((9,), "cpu")
    caffe2.ReinitializeAndCopyFrom(untyped, "cpu", source)
    assert values(untyped) == values(source)


def test_reinitialize_and_copy_from_refuses_a_change_of_type() -> None:
    tensor, source = filled((2,)), filled((2,), "int64")
    with refused(tensor, source):
        caffe2.ReinitializeAndCopyFrom(tensor, "cpu", source)
    with refused(tensor, source):
        caffe2.ReinitializeAndCopyFrom(tensor, "int64", source)
    unallocated = caffe2.Tensor((2,), "cpu")
    for target in (caffe2.Tensor(), caffe2.Tensor((3,), "cpu"), filled((2,))):
        with refused(target, unallocated):
            caffe2.ReinitializeAndCopyFrom(target, "cpu", unallocated)


@pytest.mark.parametrize("nonsense", [None, 5, "tensor", [1.0]], ids=repr)
def test_only_tensors_are_reinitialized(nonsense: Any) -> None:
    source = filled((2,))
    before = state_of(source)
    with pytest.raises((c10.EnforceNotMet, TypeError)):
        caffe2.ReinitializeTensor(nonsense, (2,), "float32")
    with pytest.raises((c10.EnforceNotMet, TypeError)):
        caffe2.ReinitializeAndCopyFrom(nonsense, "cpu", source)
    with refused(source, error=(c10.EnforceNotMet, TypeError)):
        caffe2.ReinitializeAndCopyFrom(source, "cpu", nonsense)
    assert state_of(source) == before


@pytest.mark.cuda
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="torch sees fewer than two CUDA devices")
def test_another_device_of_the_type_is_another_tensor() -> None:
    tensor = caffe2.empty((2,), c10.dtype("float32").device("cuda:0"))
    same = tensor.UnsafeSharedInstance()
    caffe2.ReinitializeAndCopyFrom(tensor, "cuda:1", filled((2,)))
    assert tensor.GetDevice() == "cuda:1"
    assert at.Tensor(tensor).tolist() == [1.0, 2.0]
    caffe2.ReinitializeTensor(tensor, (2,), c10.dtype("float32").device("cuda:0"))
    assert tensor.GetDevice() == same.GetDevice() == "cuda:0"
    assert not tensor.is_same(same)


@pytest.mark.cuda
def test_another_type_of_device_is_another_tensor() -> None:
    tensor = filled((2,))
    same = tensor.UnsafeSharedInstance()
    caffe2.ReinitializeTensor(tensor, (2,), c10.dtype("float32").device("cuda"))
    assert tensor.GetDeviceType() == c10.CUDA
    assert values(same) == [1.0, 2.0]
    caffe2.ReinitializeAndCopyFrom(tensor, c10.device("cpu"), filled((3,), "int8"))
    assert tensor.GetDeviceType() == c10.CPU
    assert values(tensor) == [1, 2, 3]
    assert caffe2.empty((2,), c10.dtype("int64").device("cuda")).GetDevice() == "cuda:0"
