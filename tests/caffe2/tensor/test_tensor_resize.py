# SPDX-License-Identifier: Apache-2.0
"""`Resize`, `ResizeLike`, `Reshape`, `ReserveSpace` and `FreeMemory`: who keeps which buffer."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2

from .state import filled, refused, state_of, values

NO_LIMIT = 2**63 - 1
BAD_DIMS = [(-1,), (2, -3), (2**40, 2**40), (2**62, 4), (2**63,)]
FAR_TOO_MUCH = 2**50


@pytest.fixture(autouse=True)
def default_flags() -> Iterator[None]:
    assert caffe2.FLAGS.caffe2_keep_on_shrink is True
    assert caffe2.FLAGS.caffe2_max_keep_on_shrink_memory == NO_LIMIT
    yield
    caffe2.FLAGS.caffe2_keep_on_shrink = True
    caffe2.FLAGS.caffe2_max_keep_on_shrink_memory = NO_LIMIT


def address_of(tensor: caffe2.Tensor) -> int:
    return tensor.storage().data_ptr()


@pytest.mark.parametrize(
    "arguments",
    [
        (4, 5),
        ((4, 5),),
        ([4, 5],),
        (c10.ArrayRef([4, 5]),),
        (np.array([4, 5]),),
        (torch.Size([4, 5]),),
        (np.int64(4), np.int32(5)),
    ],
    ids=repr,
)
def test_resize_takes_dims_or_a_sequence(arguments: tuple[Any, ...]) -> None:
    tensor = caffe2.Tensor("cpu")
    tensor.Resize(*arguments)
    assert tensor.sizes() == (4, 5)
    assert tensor.strides() == (5, 1)


def test_resize_to_no_dims_makes_a_scalar() -> None:
    tensor = filled((3,))
    tensor.Resize(())
    assert tensor.sizes() == ()
    assert tensor.numel() == 1
    assert values(tensor) == [1.0]
    other = filled((3,))
    other.Resize([])
    assert other.dim() == 0


def test_resize_within_the_capacity_keeps_the_buffer() -> None:
    tensor = filled((6,))
    address = address_of(tensor)
    for dims in [(2, 3), (4,), (0,), (5, 1), (6,)]:
        tensor.Resize(dims)
        assert address_of(tensor) == address
        assert tensor.capacity_nbytes() == 24
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_resize_beyond_the_capacity_drops_the_buffer() -> None:
    tensor = filled((6,))
    tensor.Resize(7)
    assert tensor.storage_initialized() is False
    assert tensor.capacity_nbytes() == 0
    assert address_of(tensor) == 0
    assert tensor.IsType("float32")
    with refused(tensor):
        tensor.data()
    tensor.Resize(2)  # what is gone stays gone
    assert tensor.storage_initialized() is False
    assert len(tensor.mutable_data("float32")) == 2
    assert tensor.capacity_nbytes() == 8


def test_without_keep_on_shrink_every_other_size_drops() -> None:
    caffe2.FLAGS.caffe2_keep_on_shrink = False
    tensor = filled((6,))
    address = address_of(tensor)
    tensor.Resize(3, 2)
    assert address_of(tensor) == address
    tensor.Resize(5)
    assert tensor.storage_initialized() is False
    assert tensor.capacity_nbytes() == 0


def test_max_keep_on_shrink_memory() -> None:
    caffe2.FLAGS.caffe2_max_keep_on_shrink_memory = 8
    tensor = filled((6,))
    address = address_of(tensor)
    tensor.Resize(4)  # 8 bytes spare
    assert address_of(tensor) == address
    tensor.Resize(3)  # 12
    assert tensor.storage_initialized() is False


@pytest.mark.parametrize("reserve", [lambda t: t.ReserveSpace(10), lambda t: t.Extend(1, 900.0)])
def test_reserved_memory_outlives_the_flags(reserve: Any) -> None:
    tensor = filled((1,))
    reserve(tensor)
    assert tensor.capacity_nbytes() == 40
    caffe2.FLAGS.caffe2_keep_on_shrink = False
    caffe2.FLAGS.caffe2_max_keep_on_shrink_memory = 0
    address = address_of(tensor)
    for rows in (5, 1, 0, 10):
        tensor.Resize(rows)
        assert address_of(tensor) == address
    tensor.Resize(11)
    assert tensor.storage_initialized() is False


def test_resize_of_a_sharer_leaves_the_others() -> None:
    tensor = filled((4,))
    alias = tensor.Alias()
    alias.Resize(2)
    assert alias.storage().use_count() == 2
    assert tensor.sizes() == (4,)
    alias.Resize(5)
    assert alias.storage_initialized() is False
    assert tensor.storage().use_count() == alias.storage().use_count() == 1
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("dims", BAD_DIMS, ids=str)
def test_bad_dims_change_nothing(dims: tuple[int, ...]) -> None:
    for tensor in (filled((2, 3)), caffe2.Tensor((2, 3), "cpu"), caffe2.Tensor("cpu")):
        with refused(tensor, match="Resize"):
            tensor.Resize(dims)
        with refused(tensor, match="Resize"):
            tensor.Resize(*dims)
        with refused(tensor):
            tensor.Reshape(dims)


def test_bytes_that_overflow_are_refused() -> None:
    """As many elements as fit into 64 bits, whose bytes do not."""
    tensor = caffe2.Tensor((2**62,), "cpu")
    with refused(tensor, error=(c10.EnforceNotMet, MemoryError)):
        tensor.mutable_data("float64")
    assert tensor.sizes() == (2**62,)


@pytest.mark.parametrize("dims", [("two",), (1.5,), (None,), ({},), "23"], ids=repr)
def test_dims_that_are_not_integers_are_refused(dims: Any) -> None:
    tensor = filled((2, 3))
    with refused(tensor, error=(c10.EnforceNotMet, TypeError)):
        tensor.Resize(dims)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.Resize(2),
        lambda t: t.ResizeLike(caffe2.Tensor((2,), "cpu")),
        lambda t: t.Reshape((2,)),
        lambda t: t.Extend(1),
        lambda t: t.ExtendTo(1),
        lambda t: t.ShrinkTo(0),
        lambda t: t.ReserveSpace(1),
        lambda t: t.FreeMemory(),
        lambda t: t.mutable_data("float32"),
        lambda t: t.raw_mutable_data("float32"),
        lambda t: t.data(),
        lambda t: t.raw_data(),
        lambda t: t.Alias(),
        lambda t: t.Clone(),
        lambda t: t.CopyFrom(caffe2.Tensor((2,), [1.0, 2.0])),
        lambda t: t.ShareData(caffe2.Tensor((2,), [1.0, 2.0])),
        lambda t: t.ShareExternalPointer(np.zeros(1)),
    ],
)
def test_an_undefined_tensor_refuses(call: Any) -> None:
    tensor = caffe2.Tensor()
    with refused(tensor):
        call(tensor)


def test_resize_like_takes_the_sizes_of_its_source() -> None:
    source = filled((2, 3))
    tensor = caffe2.Tensor("cpu")
    tensor.ResizeLike(source)
    assert tensor.sizes() == (2, 3)
    assert tensor.storage_initialized() is False
    source.ResizeLike(source)
    assert values(source) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_resize_like_wants_a_contiguous_source() -> None:
    source = filled((2, 3))
    at.Tensor(source).set_(at.Tensor(source).t())
    tensor = filled((4,))
    with refused(tensor, match="contiguous"):
        tensor.ResizeLike(source)


def test_reshape_keeps_everything_but_the_shape() -> None:
    tensor = filled((2, 3))
    alias = tensor.Alias()
    before = address_of(tensor)
    tensor.Reshape((3, 1, 2))
    tensor.Reshape([6])
    tensor.Reshape(c10.ArrayRef([1, 6]))
    assert tensor.sizes() == (1, 6)
    assert tensor.strides() == (6, 1)
    assert address_of(tensor) == before
    assert alias.sizes() == (2, 3)
    unallocated = caffe2.Tensor((4,), "cpu")
    unallocated.Reshape((2, 2))
    assert unallocated.sizes() == (2, 2)
    empty = caffe2.Tensor((0, 5), "cpu")
    empty.Reshape((3, 0))
    assert empty.sizes() == (3, 0)


@pytest.mark.parametrize("dims", [(5,), (), (2, 2), (0,), (-1, 6), (-2, -3), (2, 3, 2)], ids=str)
def test_reshape_refuses_another_number_of_elements(dims: tuple[int, ...]) -> None:
    tensor = filled((2, 3))
    with refused(tensor) as caught:
        tensor.Reshape(dims)
    assert "Resize" in str(caught.value) or min(dims, default=0) < 0


def test_reserve_space_drops_the_data_and_keeps_the_sizes() -> None:
    tensor = filled((2, 3))
    before = address_of(tensor)
    tensor.ReserveSpace(2)
    assert address_of(tensor) == before
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    tensor.ReserveSpace(5)
    assert tensor.sizes() == (2, 3)
    assert tensor.capacity_nbytes() == 60
    address = address_of(tensor)
    tensor.mutable_data("float32")[:] = 7
    tensor.Extend(3)
    assert tensor.sizes() == (5, 3)
    assert address_of(tensor) == address
    assert values(tensor)[:6] == [7.0] * 6


def test_reserve_space_refuses_a_shared_storage() -> None:
    tensor = filled((2,))
    alias = tensor.Alias()
    for rows in (1, 2, 9):
        with refused(tensor, alias, match="share"):
            tensor.ReserveSpace(rows)


@pytest.mark.parametrize("rows", [-1, -(2**40), 2**62, 2**63])
def test_reserve_space_refuses_impossible_rows(rows: int) -> None:
    for tensor in (filled((2, 3)), filled((2, 3), "string")):
        with refused(tensor, error=(c10.EnforceNotMet, MemoryError)):
            tensor.ReserveSpace(rows)


def test_reserve_space_needs_a_dimension() -> None:
    tensor = filled(())
    with refused(tensor):
        tensor.ReserveSpace(4)


def test_reserve_space_of_fewer_rows_than_there_are() -> None:
    """Without memory the real one allocates too little and overruns it."""
    tensor = filled((8,))
    tensor.FreeMemory()
    tensor.ReserveSpace(2)
    view = tensor.mutable_data("float32")
    assert len(view) == 8
    view[:] = 1
    assert tensor.capacity_nbytes() >= 32


def test_free_memory_keeps_sizes_and_type() -> None:
    tensor = filled((2, 3))
    alias = tensor.Alias()
    tensor.FreeMemory()
    assert tensor.sizes() == (2, 3)
    assert tensor.IsType("float32")
    assert tensor.storage_initialized() is False
    assert tensor.capacity_nbytes() == 0
    assert tensor.storage().use_count() == alias.storage().use_count() == 1
    assert values(alias) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    tensor.mutable_data("float32")[:] = 8
    assert values(alias) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    caffe2.Tensor("cpu").FreeMemory()


def test_an_allocation_that_fails_leaves_the_tensor_as_it_was() -> None:
    untyped = caffe2.Tensor((FAR_TOO_MUCH,), "cpu")
    with refused(untyped, error=MemoryError):
        untyped.mutable_data("float32")
    assert not untyped.dtype()
    typed = filled((2,))
    typed.Resize(FAR_TOO_MUCH)
    with refused(typed, error=MemoryError):
        typed.mutable_data("float32")
    with refused(typed, error=MemoryError):
        typed.raw_mutable_data("float64")
    reserved = filled((2, 3))
    with refused(reserved, error=MemoryError):
        reserved.ReserveSpace(FAR_TOO_MUCH)
    with refused(reserved, error=MemoryError):
        reserved.Extend(FAR_TOO_MUCH)
    with refused(reserved, error=MemoryError):
        caffe2.ReinitializeTensor(reserved, (FAR_TOO_MUCH,), "float32")
    with refused(reserved, error=MemoryError):
        caffe2.ReinitializeTensor(reserved, (FAR_TOO_MUCH,), "float64")
    with pytest.raises(MemoryError):
        caffe2.empty((FAR_TOO_MUCH,), "float32")
    assert state_of(reserved)["sizes"] == (2, 3)
