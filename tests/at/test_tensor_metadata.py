# SPDX-License-Identifier: Apache-2.0
"""What a tensor says of itself, and that both wrappers of one TensorImpl say the same."""

import gc
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from tests.helpers.isolate import isolated

from .comparing import ERRORS, pair, read_only

SHAPES = [(), (0,), (1,), (5,), (2, 3), (2, 0, 3), (2, 3, 4), (1, 2, 1, 3, 1)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


@every_shape
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128", "bfloat16"])
def test_a_new_tensor_has_the_metadata_that_torch_gives(shape: tuple[int, ...], dtype: str) -> None:
    tensor = at.empty(shape, dtype)
    expected = torch.empty(shape, dtype=getattr(torch, dtype))
    assert tensor.sizes() == shape
    assert tensor.strides() == expected.stride()
    assert isinstance(tensor.sizes(), c10.ArrayRef)
    assert isinstance(tensor.strides(), c10.ArrayRef)
    assert tensor.shape == shape
    assert isinstance(tensor.shape, tuple)
    assert tensor.dim() == tensor.ndim == len(shape)
    assert tensor.numel() == expected.numel()
    assert tensor.itemsize() == expected.element_size()
    assert tensor.nbytes() == expected.numel() * expected.element_size()
    assert tensor.dtype() == getattr(c10, dtype)
    assert tensor.device() == "cpu"
    assert isinstance(tensor.device(), c10.Device)
    assert isinstance(tensor.storage(), c10.Storage)
    assert tensor.storage_offset() == 0
    assert tensor.is_contiguous() is True
    assert tensor.defined() is True
    assert tensor.readonly is False
    assert isinstance(tensor.data_ptr(), int)


@every_shape
def test_size_and_stride_take_one_dimension_and_refuse_others(shape: tuple[int, ...]) -> None:
    tensor, expected = at.empty(shape), torch.empty(shape)
    for dim in range(-len(shape), len(shape)):
        assert tensor.size(dim) == expected.size(dim)
        assert tensor.stride(dim) == expected.stride(dim)
    for dim in [len(shape), -len(shape) - 1, 2**40]:
        with pytest.raises(ERRORS):
            tensor.size(dim)
        with pytest.raises(ERRORS):
            tensor.stride(dim)


@every_shape
def test_len_is_the_first_size(shape: tuple[int, ...]) -> None:
    if shape:
        assert len(at.empty(shape)) == shape[0]
    else:
        with pytest.raises(TypeError):
            len(at.empty(shape))


def test_a_view_has_strides_offset_and_address_of_its_own() -> None:
    tensor, expected = pair((4, 6))
    view, expected = tensor[1:, 2:4].t(), expected[1:, 2:4].t()
    assert view.strides() == expected.stride()
    assert view.storage_offset() == expected.storage_offset() == 8
    assert view.data_ptr() == tensor.data_ptr() + 4 * 8
    assert view.is_contiguous() is False
    assert (view.numel(), view.nbytes(), view.dim()) == (6, 24, 2)


def test_values_can_be_read_but_not_set() -> None:
    tensor = at.zeros((2, 3))
    for name, value in {"shape": (6,), "ndim": 1, "readonly": True}.items():
        with pytest.raises(AttributeError):
            setattr(tensor, name, value)
    assert (tensor.shape, tensor.readonly) == ((2, 3), False)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float8_e4m3fn", "complex64"])
def test_repr_and_tolist_read_memory_with_any_bits(dtype: str) -> None:
    """Memory that was never written may hold anything, signalling NaNs too."""
    memory = np.random.default_rng(0).integers(0, 256, 4096, dtype=np.uint8)
    tensor = at.from_blob(memory, (64,), options=dtype)
    assert "64" in repr(tensor) or dtype in repr(tensor)
    assert len(tensor.tolist()) == 64
    assert at.full((2,), 1.0, dtype).tolist() == [1.0, 1.0]


@isolated
def test_repr_of_many_lists_without_elements() -> None:
    assert repr(at.zeros(2, 0)) == "at.Tensor([], sizes=[2, 0], dtype=float32)"
    assert repr(at.zeros(2**40, 0)) == f"at.Tensor([], sizes=[{2**40}, 0], dtype=float32)"
    assert repr(at.zeros(0, 2**40)) == f"at.Tensor([], sizes=[0, {2**40}], dtype=float32)"


def test_repr_shows_values_for_every_shape() -> None:
    assert "7" in repr(at.full((2,), 7.0))
    for shape in SHAPES:
        assert "Tensor" in repr(at.zeros(shape))


def test_readonly_is_true_for_views_and_wrappers_of_read_only_memory() -> None:
    tensor, _ = read_only()
    assert tensor.readonly is True
    assert tensor[0].readonly is True
    assert at.Tensor(tensor).readonly is True
    assert tensor.clone().readonly is False
    assert bridge.from_dlpack(b"bytes").readonly is True
    assert bridge.from_dlpack(np.zeros(3)).readonly is False


def test_is_same_compares_the_tensor_impl() -> None:
    tensor = at.zeros((2, 3))
    assert tensor.is_same(tensor) is True
    assert tensor.is_same(at.Tensor(tensor)) is True
    assert tensor.is_same(at.Tensor(caffe2.Tensor(tensor))) is True
    assert tensor.is_same(tensor.alias()) is False
    assert tensor.is_same(tensor.clone()) is False


def test_both_wrappers_show_the_same() -> None:
    tensor = at.zeros((2, 3), "int16")
    shared = caffe2.Tensor(tensor)
    assert shared.sizes() == tensor.sizes()
    assert shared.strides() == tensor.strides()
    assert shared.dtype() == tensor.dtype()
    assert (shared.numel(), shared.dim(), shared.nbytes()) == (6, 2, 12)
    assert shared.GetDevice() == tensor.device()
    assert shared.raw_data() == tensor.data_ptr()


def test_data_is_shared_between_the_wrappers() -> None:
    tensor = at.zeros((2, 3))
    shared = caffe2.Tensor(tensor)
    tensor.fill_(3)
    assert shared.data().tolist() == [3.0] * 6
    shared.mutable_data("float32")[1] = 9
    assert tensor.tolist() == [[3.0, 9.0, 3.0], [3.0, 3.0, 3.0]]


def test_metadata_is_shared_between_the_wrappers() -> None:
    tensor = at.zeros((2, 3))
    first, second = caffe2.Tensor(tensor), at.Tensor(caffe2.Tensor(tensor))
    tensor.resize_(4, 5)
    assert first.sizes() == second.sizes() == (4, 5)
    assert first.raw_data() == second.data_ptr() == tensor.data_ptr()
    first.Resize(6)
    assert tensor.sizes() == second.sizes() == (6,)
    first.Reshape((3, 2))
    assert tensor.strides() == (2, 1)
    assert tensor.shape == second.shape == (3, 2)


def test_a_new_type_is_shared_between_the_wrappers() -> None:
    tensor = at.zeros((2, 3))
    shared = caffe2.Tensor(tensor)
    shared.mutable_data("float64")[:] = 2
    assert tensor.dtype() == c10.float64
    assert tensor.tolist() == [[2.0] * 3] * 2


def test_set_is_shared_between_the_wrappers() -> None:
    tensor, other = at.zeros((2, 3)), at.ones((4,))
    shared = caffe2.Tensor(tensor)
    tensor.set_(other)
    assert shared.sizes() == (4,)
    assert shared.raw_data() == other.data_ptr()


@pytest.mark.parametrize("number", range(3))
def test_memory_outlives_either_wrapper(number: int) -> None:
    tensor = at.full((100,), 5.0)
    shared = caffe2.Tensor(tensor)
    third = at.Tensor(shared)
    holders: list[Any] = [tensor, shared, third]
    del tensor, shared, third
    kept = holders.pop(number)
    holders.clear()
    gc.collect()
    garbage = [at.zeros((100,)) for _ in range(20)]
    assert len(garbage) == 20
    assert kept.numpy().tolist() == [5.0] * 100


@pytest.mark.parametrize(
    "make",
    [
        lambda tensor: tensor.t(),
        lambda tensor: tensor[:, 1:],
        lambda tensor: tensor[::2],
        lambda tensor: tensor[::-1],
        lambda tensor: tensor[0].expand(4, 6),
    ],
    ids=["t", "columns", "step", "reversed", "expand"],
)
def test_a_tensor_that_is_not_contiguous_is_refused_by_caffe2(make) -> None:
    tensor = make(at.zeros((4, 6)))
    with pytest.raises(c10.EnforceNotMet, match="contiguous"):
        caffe2.Tensor(tensor)
    assert caffe2.Tensor(tensor.contiguous()).sizes() == tensor.sizes()


def test_contiguous_views_are_shared_with_caffe2() -> None:
    tensor = at.zeros((4, 6))
    shared = caffe2.Tensor(tensor[1:3])
    shared.mutable_data("float32")[:] = 5
    assert tensor[:, 0].tolist() == [0.0, 5.0, 5.0, 0.0]
    assert caffe2.Tensor(tensor[2:2]).numel() == 0
    assert caffe2.Tensor(at.zeros((1, 6)).t()).sizes() == (6, 1)


def test_to_converts_the_memory_format_and_keeps_one_that_fits() -> None:
    x, t = at.ones(2, 3, 4, 4), torch.ones(2, 3, 4, 4)
    last = x.to(memory_format=torch.channels_last)
    assert last.stride() == t.to(memory_format=torch.channels_last).stride()
    assert last.to(memory_format=torch.channels_last) is last
    double = x.to("float64", memory_format=torch.channels_last)
    assert (double.dtype, double.stride()) == (c10.float64, last.stride())
    assert x.to(memory_format=torch.preserve_format) is x
    assert x.to(copy=True, memory_format=torch.channels_last).data_ptr() != x.data_ptr()


@pytest.mark.parametrize(("start", "length"), [(11, 0), (-11, 0)])
def test_narrow_refuses_a_start_or_length_outside(start: int, length: int) -> None:
    for x in (at.arange(10), torch.arange(10)):
        with pytest.raises(IndexError):
            x.narrow(0, start, length)
    assert at.arange(10).narrow(0, 10, 0).shape == (0,)


def test_view_takes_the_keyword_dtype_of_numpy() -> None:
    x = at.ones(2)
    assert x.view(dtype="int32").tolist() == x.view("int32").tolist()
    with pytest.raises(TypeError, match="both"):
        x.view(2, dtype="int32")


def test_an_attribute_that_torch_refuses_is_not_there() -> None:
    assert not hasattr(at.ones(2), "imag")
    with pytest.raises(RuntimeError, match="imag"):
        _ = at.ones(2).imag


def test_size_and_stride_are_tuples_that_functions_of_torch_take() -> None:
    x = at.ones(2, 3).t()
    assert torch.zeros(x.size()).shape == (3, 2)
    assert torch.ones(6).view(x.size()).shape == torch.ones(6).reshape(x.size()).shape == (3, 2)
    assert torch.empty_strided(x.size(), x.stride()).stride() == x.stride() == (1, 3)
    assert x.size() == x.sizes()
    assert x.size().numel() == 6
