# SPDX-License-Identifier: Apache-2.0
"""The constructors of `caffe2.Tensor`."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from tests.helpers.ids import shown

from .state import filled, refused, state_of, values

CPU_SPELLINGS = ["cpu", c10.Device("cpu"), c10.CPU, c10.DeviceType.CPU, torch.device("cpu")]
DIMS_SPELLINGS = [(2, 3), [2, 3], c10.ArrayRef([2, 3]), np.array([2, 3]), torch.Size([2, 3])]


def test_no_argument_is_undefined() -> None:
    tensor = caffe2.Tensor()
    assert not tensor
    assert tensor.defined() is False
    assert "Tensor" in repr(tensor)


@pytest.mark.parametrize("device", CPU_SPELLINGS, ids=repr)
def test_a_device_alone_makes_an_empty_untyped_tensor(device: Any) -> None:
    tensor = caffe2.Tensor(device)
    assert tensor
    assert tensor.defined() is True
    assert tensor.sizes() == (0,)
    assert tensor.numel() == 0
    assert tensor.GetDevice() == "cpu"
    assert tensor.GetDeviceType() == c10.CPU
    assert not tensor.dtype()
    assert tensor.dtype_initialized() is False
    assert tensor.storage_initialized() is True  # there is nothing to allocate
    assert tensor.capacity_nbytes() == 0


@pytest.mark.parametrize("device", CPU_SPELLINGS, ids=repr)
@pytest.mark.parametrize("dims", DIMS_SPELLINGS, ids=lambda dims: type(dims).__name__)
def test_dims_and_device_make_a_tensor_without_memory(dims: Any, device: Any) -> None:
    tensor = caffe2.Tensor(dims, device)
    assert tensor.sizes() == (2, 3)
    assert tensor.strides() == (3, 1)
    assert tensor.numel() == 6
    assert tensor.storage_initialized() is False
    assert tensor.storage().data_ptr() == 0
    assert tensor.capacity_nbytes() == 0
    assert not tensor.dtype()
    view = tensor.mutable_data("float32")
    assert tensor.storage_initialized() is True
    assert tensor.storage().data_ptr() == view.ctypes.data
    assert tensor.capacity_nbytes() == 24


@pytest.mark.parametrize(
    ("dims", "numel", "strides"),
    [
        ((), 1, ()),
        ((0,), 0, (1,)),
        ((0, 3), 0, (3, 1)),
        ((3, 0), 0, (1, 1)),
        ((2, 0, 4), 0, (4, 4, 1)),
        ((1,) * 70, 1, (1,) * 70),
    ],
    ids=str,
)
def test_any_number_of_dims_is_taken(
    dims: tuple[int, ...], numel: int, strides: tuple[int, ...]
) -> None:
    tensor = caffe2.Tensor(dims, "cpu")
    assert tensor.sizes() == dims
    assert tensor.dim() == len(dims)
    assert tensor.numel() == numel
    assert tensor.strides() == strides
    assert tensor.storage_initialized() is (numel == 0)
    assert len(tensor.mutable_data("int64")) == numel


BAD_DIMS = [(-1,), (2, -3), (2**40, 2**40), (2**62, 4), (2**63,), (2**31, 2**31, 2**31)]


@pytest.mark.parametrize("dims", BAD_DIMS, ids=str)
def test_negative_and_overflowing_dims_are_refused(dims: tuple[int, ...]) -> None:
    with pytest.raises(c10.EnforceNotMet):
        caffe2.Tensor(dims, "cpu")
    with pytest.raises(c10.EnforceNotMet):
        caffe2.Tensor(dims, [1.0])
    with pytest.raises(c10.EnforceNotMet):
        caffe2.empty(dims, "float32")


@pytest.mark.parametrize(
    ("values_", "name"),
    [
        ([1, 2], "int64"),
        ([1.0, 2.0], "float64"),
        ([1, 2.5], "float64"),
        ([True, False], "bool"),
        ([1j, 2], "complex128"),
        ([b"one", b"two"], "string"),
        (["one", "two"], "string"),
        (np.array([1, 2], np.int8), "int8"),
        (np.array([1, 2], np.float16), "float16"),
    ],
    ids=str,
)
def test_values_have_numpys_type(values_: Any, name: str) -> None:
    tensor = caffe2.Tensor((2, 1), values_)
    assert tensor.dtype().name == name
    assert tensor.IsType(name)
    assert tensor.sizes() == (2, 1)
    assert tensor.GetDevice() == "cpu"


@pytest.mark.parametrize("type_", ["float32", np.float32, torch.float32, c10.float32], ids=repr)
def test_values_take_the_type_that_is_named(type_: Any) -> None:
    tensor = caffe2.Tensor((2, 2), [1, 2, 3, 4], type_)
    assert tensor.IsType("float32")
    assert tensor.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_values_are_copied() -> None:
    array = np.array([1.0, 2.0, 3.0])
    tensor = caffe2.Tensor((3,), array)
    array[:] = 0
    assert values(tensor) == [1.0, 2.0, 3.0]
    tensor.mutable_data("float64")[:] = 9
    assert array.tolist() == [0.0, 0.0, 0.0]


def test_scalar_empty_and_string_values_are_taken() -> None:
    assert caffe2.Tensor((), [5.0]).numpy().tolist() == 5.0
    assert caffe2.Tensor((0, 2), [], "int32").sizes() == (0, 2)
    assert values(caffe2.Tensor((2,), ["é", b"\x00\xff"])) == ["é".encode(), b"\x00\xff"]


@pytest.mark.parametrize(("dims", "count"), [((2,), 3), ((2,), 1), ((0,), 1), ((), 2), ((2, 2), 3)])
def test_another_number_of_values_than_elements_is_refused(
    dims: tuple[int, ...], count: int
) -> None:
    with pytest.raises(c10.EnforceNotMet):
        caffe2.Tensor(dims, [1.0] * count)


def test_at_tensor_is_shared() -> None:
    whole = at.arange(6, dtype="float32")
    tensor = caffe2.Tensor(whole)
    assert tensor.unsafeGetTensorImpl() is at.Tensor(tensor).unsafeGetTensorImpl()
    tensor.mutable_data("float32")[0] = 42
    assert whole.tolist()[0] == 42.0
    tensor.Resize(2, 2)  # data *and* metadata
    assert whole.sizes() == (2, 2)
    whole.resize_(3)
    assert tensor.sizes() == (3,)


def test_a_contiguous_view_into_the_middle_is_shared() -> None:
    whole = at.arange(8, dtype="int64")
    tensor = caffe2.Tensor(whole.slice(0, 2, 6))
    assert values(tensor) == [2, 3, 4, 5]
    assert tensor.raw_data() == whole.data_ptr() + 16
    assert tensor.storage().data_ptr() == whole.data_ptr()
    assert tensor.capacity_nbytes() == 64
    assert tensor.storage().use_count() == 2


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x.slice(1, 0, 2),
        lambda x: x.slice(0, 0, 3, 2),
        lambda x: x.unsqueeze(0).expand(4, 3, 4),
        lambda x: x.diagonal(),
    ],
    ids=["transposed", "columns", "every second", "expanded", "diagonal"],
)
def test_non_contiguous_at_tensor_is_refused(view: Any) -> None:
    matrix = at.arange(12).view(3, 4)
    with pytest.raises(c10.EnforceNotMet, match="contiguous"):
        caffe2.Tensor(view(matrix))


def test_a_tensor_and_a_device_make_a_copy() -> None:
    source = filled((2, 3))
    copied = caffe2.Tensor(source, "cpu")
    assert not copied.is_same(source)
    assert copied.numpy().tolist() == source.numpy().tolist()
    assert copied.storage().data_ptr() != source.storage().data_ptr()
    assert copied.storage().use_count() == source.storage().use_count() == 1
    unallocated = caffe2.Tensor((2, 3), "cpu")
    with refused(unallocated):
        caffe2.Tensor(unallocated, "cpu")
    assert not caffe2.Tensor(caffe2.Tensor("cpu"), "cpu").dtype()


@pytest.mark.parametrize("call", [caffe2.Tensor, copy.copy], ids=["constructor", "copy.copy"])
@pytest.mark.parametrize("tensor", [filled((2,)), caffe2.Tensor("cpu"), caffe2.Tensor()], ids=repr)
def test_copy_copy_is_refused_and_names_the_methods_that_copy(
    call: Any, tensor: caffe2.Tensor
) -> None:
    before = state_of(tensor)
    with pytest.raises(TypeError) as caught:
        call(tensor)
    for name in ("UnsafeSharedInstance", "Alias", "Clone"):
        assert name in str(caught.value)
    assert state_of(tensor) == before


@pytest.mark.parametrize("keyword", [{"dtpye": "float32"}, {"requires_grad": True}], ids=str)
def test_unknown_keywords_are_refused(keyword: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        caffe2.Tensor((2,), "cpu", **keyword)


@pytest.mark.parametrize(
    "arguments",
    [((2,), "no device"), ((2,), None), (None,), ("no device",), ((2,), object()), ((1.5,), "cpu")],
    ids=shown,
)
def test_arguments_that_make_no_tensor_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((c10.EnforceNotMet, TypeError)):
        caffe2.Tensor(*arguments)


@pytest.mark.cuda
def test_a_tensor_on_cuda_is_allocated_at_first_use_or_copied() -> None:
    tensor = caffe2.Tensor((2, 3), "cuda:0")
    assert tensor.GetDevice() == "cuda:0"
    assert tensor.GetDeviceType() == c10.CUDA
    assert tensor.storage_initialized() is False
    source = filled((2, 3))
    there = caffe2.Tensor(source, "cuda")
    assert there.GetDeviceType() == c10.CUDA
    assert there.to_torch().cpu().tolist() == source.numpy().tolist()
    assert caffe2.Tensor(there, "cpu").numpy().tolist() == source.numpy().tolist()


@pytest.mark.parametrize(
    "values",
    [[None], [object()], [2**70], np.zeros(1, "M8[s]"), np.zeros(1, [("a", "i4")])],
    ids=["None", "object", "past 64 bits", "time", "structure"],
)
def test_values_without_an_element_type_are_refused(values: Any) -> None:
    with pytest.raises(c10.EnforceNotMet, match="are not a tensor"):
        caffe2.Tensor([1], values)


def test_takes_contiguous_tensors_of_any_library_on_their_memory() -> None:
    t = torch.arange(6.0).reshape(2, 3)
    x = caffe2.Tensor(t)
    assert x.raw_data() == t.data_ptr()
    assert x.to_torch() is t
    array = np.arange(4)
    assert caffe2.Tensor(array).raw_data() == array.ctypes.data
    assert caffe2.Tensor(t.__dlpack__()).numpy().tolist() == t.tolist()
    with bridge.audit() as log:
        caffe2.Tensor(t)
    assert "shared" in str(log)


def test_refuses_other_libraries_tensors_that_from_dlpack_or_caffe2_refuses() -> None:
    with pytest.raises(
        c10.EnforceNotMet, match=r"sizes \[3, 2\] with strides \[1, 3\].*contiguous"
    ):
        caffe2.Tensor(torch.ones(2, 3).t())
    with pytest.raises(c10.EnforceNotMet, match=r"detach\(\)") as caught:
        caffe2.Tensor(torch.ones(2, requires_grad=True))
    assert isinstance(caught.value, BufferError)


@pytest.mark.parametrize("wrong", [3, 2.5, [2, 3], (1,), None, {}, object()])
def test_refuses_an_object_that_is_not_a_tensor(wrong: object) -> None:
    with pytest.raises(c10.EnforceNotMet, match=f"not {type(wrong).__name__}") as caught:
        caffe2.Tensor(wrong)
    assert isinstance(caught.value, TypeError)
