# SPDX-License-Identifier: Apache-2.0
"""Factories: every way to pass dims and options, and what each tensor holds."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10
from bridge.c10 import EnforceNotMet
from tests.helpers.ids import shown

from .comparing import ERRORS

BY_DIMS: dict[str, Callable[..., at.Tensor]] = {
    "empty": at.empty,
    "zeros": at.zeros,
    "ones": at.ones,
    "rand": at.rand,
    "randn": at.randn,
}
every_factory = pytest.mark.parametrize("make", BY_DIMS.values(), ids=BY_DIMS)

WAYS: dict[str, tuple[tuple[Any, ...], tuple[int, ...]]] = {
    "positional": ((2, 3), (2, 3)),
    "one": ((4,), (4,)),
    "tuple": (((2, 3),), (2, 3)),
    "list": (([2, 3],), (2, 3)),
    "scalar": (((),), ()),
    "zero": ((2, 0, 3), (2, 0, 3)),
    "torch.Size": ((torch.Size([2, 3]),), (2, 3)),
    "ArrayRef": ((c10.ArrayRef([2, 3]),), (2, 3)),
    "numpy ints": ((np.int64(2), np.int32(3)), (2, 3)),
    "sixty dims": (((1,) * 60,), (1,) * 60),
}


@every_factory
@pytest.mark.parametrize(("dims", "shape"), WAYS.values(), ids=WAYS)
def test_factories_take_sizes_in_every_spelling(
    make: Callable[..., at.Tensor], dims: Any, shape: tuple[int, ...]
) -> None:
    tensor = make(*dims)
    assert isinstance(tensor, at.Tensor)
    assert tensor.shape == shape
    assert tensor.dtype() == c10.float32
    assert tensor.device() == "cpu"
    assert tensor.is_contiguous()
    assert tensor.storage_offset() == 0
    assert not tensor.readonly


@every_factory
@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        ((c10.float64,), {}),
        ((torch.float64,), {}),
        ((np.dtype("float64"),), {}),
        ((float,), {}),
        (("float64",), {}),
        ((c10.dtype("float64").device("cpu"),), {}),
        ((), {"dtype": "float64"}),
        ((), {"dtype": np.float64, "device": c10.CPU}),
        ((), {"device": torch.device("cpu"), "dtype": torch.float64}),
    ],
    ids=repr,
)
def test_factories_take_options_in_every_spelling(
    make: Callable[..., at.Tensor], arguments: Any, keywords: Any
) -> None:
    for tensor in [make((2, 3), *arguments, **keywords), make(2, 3, *arguments, **keywords)]:
        assert tensor.dtype() == c10.float64
        assert tensor.shape == (2, 3)


@every_factory
def test_factories_take_a_device_alone(make: Callable[..., at.Tensor]) -> None:
    for device in ["cpu", c10.CPU, c10.Device("cpu"), torch.device("cpu")]:
        for tensor in [make((2, 3), device), make(2, 3, device), make(2, 3, device=device)]:
            assert (tensor.shape, tensor.dtype(), tensor.device()) == ((2, 3), c10.float32, "cpu")


@every_factory
@pytest.mark.parametrize(
    ("dims", "keywords"),
    [
        ((-1,), {}),
        (((2, -3),), {}),
        ((2**40, 2**40), {}),
        (("text",), {}),
        ((2.5,), {}),
        (((2, "3"),), {}),
        (((2, 3), "no_such_option"), {}),
        (((2, 3), object()), {}),
        (((2, 3),), {"dtype": "no_such_type"}),
        (((2, 3),), {"device": "no_such_device"}),
        (((2, 3),), {"no_such_keyword": 1}),
    ],
    ids=shown,
)
def test_factories_refuse_wrong_arguments(
    make: Callable[..., at.Tensor], dims: Any, keywords: Any
) -> None:
    with pytest.raises((*ERRORS, MemoryError)):
        make(*dims, **keywords)


def test_no_such_keyword_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        at.empty((2, 3), no_such_keyword=1)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16", "complex64", "uint16"])
def test_zeros_ones_and_full_make_tensors_of_every_type(dtype: str) -> None:
    numpy_dtype = getattr(c10, dtype).numpy
    np.testing.assert_array_equal(at.zeros((2, 3), dtype).numpy(), np.zeros((2, 3), numpy_dtype))
    np.testing.assert_array_equal(at.ones((2, 3), dtype).numpy(), np.ones((2, 3), numpy_dtype))
    np.testing.assert_array_equal(
        at.full((2, 3), 1, dtype).numpy(), np.full((2, 3), 1, numpy_dtype)
    )


def test_full_fills_with_the_value_in_the_type_that_is_asked_for() -> None:
    assert at.full((2, 2), 1.5).tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert at.full((2,), 1.5).dtype() == c10.float32
    assert at.full([3], -7, "int8").tolist() == [-7] * 3
    assert at.full((), 2.5, dtype="float64").item() == 2.5
    assert at.full((0, 3), 1.0).shape == (0, 3)
    assert at.full((1,), 2**53 + 1, "int64").item() == 2**53 + 1
    assert at.full((1,), 2**64 - 1, "uint64").item() == 2**64 - 1
    assert at.full((2,), 1 + 2j, "complex64").tolist() == [1 + 2j, 1 + 2j]


@pytest.mark.parametrize(
    "value",
    [
        True,
        3,
        1.5,
        2j,
        np.int8(3),
        np.uint8(3),
        np.float64(1.5),
        np.float16(1.5),
        np.complex128(2j),
        torch.tensor(3, dtype=torch.int16),
    ],
    ids=repr,
)
def test_full_infers_the_type_as_torch(value: Any) -> None:
    expected = torch.full((2,), value)
    assert torch.equal(at.full((2,), value).to_torch(), expected)
    assert at.full(2, value).dtype().torch is expected.dtype
    if isinstance(value, torch.Tensor):
        assert at.full((2,), bridge.from_dlpack(value)).dtype().torch is expected.dtype
    assert at.full((2,), np.bool_(True)).dtype() == c10.bool  # which torch does not take


@pytest.mark.parametrize("size", [3, np.int64(3), [3], np.array([3]), torch.Size([3])], ids=repr)
def test_full_takes_sizes_of_every_kind(size: Any) -> None:
    assert at.full(size, 1).shape == (3,)


@pytest.mark.parametrize("size", [2.0, "ab", None, -1, (2, -1), object()], ids=shown)
def test_full_refuses_wrong_sizes(size: Any) -> None:
    with pytest.raises(c10.EnforceNotMet):
        at.full(size, 1)


@pytest.mark.parametrize("like", ["empty_like", "zeros_like", "ones_like", "full_like"])
def test_like_factories_take_sizes_and_type_of_their_source(like: str) -> None:
    source = at.empty((2, 3), "int16")
    arguments = (5,) if like == "full_like" else ()
    tensor = getattr(at, like)(source, *arguments)
    assert (tensor.shape, tensor.dtype(), tensor.device()) == ((2, 3), c10.int16, "cpu")
    assert tensor.data_ptr() != source.data_ptr()
    other = getattr(at, like)(source, *arguments, dtype="float64")
    assert (other.shape, other.dtype()) == ((2, 3), c10.float64)
    expected = {"zeros_like": 0, "ones_like": 1, "full_like": 5}.get(like)
    if expected is not None:
        assert tensor.tolist() == [[expected] * 3] * 2
        assert other.tolist() == [[float(expected)] * 3] * 2


def test_like_of_a_read_only_tensor_is_writable() -> None:
    tensor = at.zeros_like(at.tensor([1.0, 2.0]))
    tensor.fill_(3.0)
    assert tensor.tolist() == [3.0, 3.0]


def test_empty_strided_has_the_strides_and_the_bytes_that_they_reach() -> None:
    tensor = at.empty_strided((2, 3), (1, 2), "int32")
    assert (tensor.shape, tensor.strides(), tensor.dtype()) == ((2, 3), (1, 2), c10.int32)
    assert not tensor.is_contiguous()
    assert tensor.storage().nbytes() == 24
    tensor.copy_(at.arange(6, dtype="int32").view(2, 3))
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert at.empty_strided((2, 2), (10, 1)).storage().nbytes() == 48
    assert at.empty_strided((3,), (0,)).storage().nbytes() == 4
    assert at.empty_strided((0, 3), (3, 1)).numel() == 0


@pytest.mark.parametrize(
    ("sizes", "strides"), [((2, 3), (1,)), ((2,), (-1,)), ((-2,), (1,)), ((2, 2), (2**62, 2**62))]
)
def test_empty_strided_refuses_wrong_arguments(sizes: Any, strides: Any) -> None:
    with pytest.raises((*ERRORS, MemoryError)):
        at.empty_strided(sizes, strides)


@pytest.mark.parametrize(
    ("arguments", "dtype"),
    [
        ((5,), "int64"),
        ((2, 7), "int32"),
        ((1, 10, 3), "float32"),
        ((5, 0, -2), "int64"),
        ((0.0, 1.0, 0.25), "float64"),
        ((3, 3), "float32"),
    ],
)
def test_arange_agrees_with_numpy(arguments: Any, dtype: str) -> None:
    tensor = at.arange(*arguments, dtype=dtype)
    assert tensor.dtype() == getattr(c10, dtype)
    np.testing.assert_array_equal(tensor.numpy(), np.arange(*arguments, dtype=dtype))


def test_arange_takes_a_type_as_options() -> None:
    assert at.arange(3, c10.dtype("int16")).tolist() == [0, 1, 2]
    assert at.arange(0.0, 1.0, 0.5).dtype() == c10.float32
    assert at.arange(3, device="cpu").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "arguments", [(0, 5, 0), (0, 5, -1), (5, 0, 1), (0, float("inf")), (object(),)]
)
def test_arange_refuses_wrong_arguments(arguments: Any) -> None:
    with pytest.raises((*ERRORS, MemoryError, OverflowError)):
        at.arange(*arguments)


def test_eye_has_ones_on_its_diagonal_and_refuses_negative_sizes() -> None:
    assert at.eye(2).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert at.eye(2, 3).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert at.eye(3, dtype="int8").numpy().dtype == np.int8
    assert (at.eye(2).dtype(), at.eye(0).shape) == (c10.float32, (0, 0))
    with pytest.raises(ERRORS):
        at.eye(-1)


def test_rand_is_uniform_and_randn_is_normal() -> None:
    uniform, normal = at.rand(1000), at.randn((1000,), dtype="float64")
    values = uniform.numpy()
    assert ((values >= 0) & (values < 1)).all()
    assert len(np.unique(values)) > 900
    assert abs(normal.numpy().mean()) < 0.3
    assert 0.7 < normal.numpy().std() < 1.3
    assert normal.dtype() == c10.float64


@pytest.mark.parametrize(
    "data",
    [
        3,
        2.5,
        True,
        1 + 2j,
        [1, 2, 3],
        [[1.5, 2], [3, 4]],
        [[True, False]],
        [],
        [[]],
        [1j, 2],
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.float64(2.5),
        ((1, 2), (3, 4)),
        torch.arange(4, dtype=torch.int8),
    ],
    ids=repr,
)
def test_tensor_infers_types_as_torch(data: Any) -> None:
    tensor = at.tensor(data)
    expected = data.clone() if isinstance(data, torch.Tensor) else torch.tensor(data)
    assert tensor.dtype().torch is expected.dtype
    assert tensor.shape == tuple(expected.shape)
    assert tensor.tolist() == expected.tolist()


def test_tensor_copies_its_source() -> None:
    for source in [np.zeros(3), torch.zeros(3), at.zeros((3,))]:
        tensor = at.tensor(source)
        tensor.fill_(5)
        assert source.tolist() == [0.0, 0.0, 0.0]


def test_tensor_takes_a_type_in_every_spelling() -> None:
    assert at.tensor([1, 2], dtype="float64").dtype() == c10.float64
    assert at.tensor([1, 2], c10.dtype("int8")).tolist() == [1, 2]
    assert at.tensor([1.5, -2.5], dtype=ml_dtypes.bfloat16).tolist() == [1.5, -2.5]
    assert at.tensor([1, 0, 2], dtype=bool).tolist() == [True, False, True]


@pytest.mark.parametrize("data", [[[1, 2], [3]], object(), [object()], [1, "a"]], ids=shown)
def test_tensor_refuses_objects_without_elements(data: Any) -> None:
    with pytest.raises(ERRORS):
        at.tensor(data)


FACTORIES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("empty", "zeros", "ones", "rand", "randn", "eye", "arange"), (3,)),
    **dict.fromkeys(("empty_like", "zeros_like", "ones_like"), (at.arange(3),)),
    "full": ((3,), 1.0),
    "full_like": (at.arange(3), 1),
    "empty_strided": ((3,), (1,)),
    "tensor": ([1, 2, 3],),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_keywords_of_torch_are_taken_where_they_change_nothing(name: str) -> None:
    make = getattr(at, name)
    made = make(*FACTORIES[name], requires_grad=False, layout=torch.strided, pin_memory=False)
    assert made.sizes()[0] == 3
    assert not made.requires_grad
    with pytest.raises(EnforceNotMet, match="records no gradients"):
        make(*FACTORIES[name], requires_grad=True)
    with pytest.raises(EnforceNotMet, match="row-major"):
        make(*FACTORIES[name], layout=torch.sparse_coo)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size_of'"):
        make(*FACTORIES[name], size_of=3)
