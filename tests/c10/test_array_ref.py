# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF005  sums are what is tested
"""`c10.ArrayRef`: a read-only view of int64 values over every kind of sequence."""

import gc
import math
import pickle
from array import array
from collections import UserList
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bridge import at, c10, caffe2
from tests.helpers.ids import shown
from tests.helpers.isolate import isolated

INT64 = st.integers(-(2**63), 2**63 - 1)

SOURCES: dict[str, Callable[[list[int]], Any]] = {
    "list": list,
    "tuple": tuple,
    "array": lambda values: array("q", values),
    "numpy": lambda values: np.array(values, dtype=np.int64),
    "ArrayRef": lambda values: c10.ArrayRef(values),
    "torch.Size": torch.Size,
}
every_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)


def address(ref: c10.ArrayRef) -> int:
    """The address of the first element."""
    return np.frombuffer(ref.data, dtype=np.int64).__array_interface__["data"][0]


def test_int_array_ref_is_the_same() -> None:
    assert c10.IntArrayRef is c10.ArrayRef


@every_source
def test_a_ref_reads_every_kind_of_sequence(make: Callable[[list[int]], Any]) -> None:
    ref = c10.ArrayRef(make([4, -5, 6]))
    assert (len(ref), ref.size(), ref.empty()) == (3, 3, False)
    assert [ref[0], ref[1], ref[2]] == [4, -5, 6]
    assert [ref[-1], ref[-2], ref[-3]] == [6, -5, 4]
    assert all(type(value) is int for value in ref)
    assert list(ref) == [4, -5, 6]
    assert list(reversed(ref)) == [6, -5, 4]
    assert (ref.front(), ref.back()) == (4, 6)
    assert ref.vec() == [4, -5, 6]
    assert -5 in ref
    assert 5 not in ref


@every_source
def test_a_ref_of_nothing_is_empty_and_refuses_to_be_indexed(
    make: Callable[[list[int]], Any],
) -> None:
    ref = c10.ArrayRef(make([]))
    assert (len(ref), ref.size(), ref.empty(), ref.vec()) == (0, 0, True, [])
    assert ref == ()
    assert len(ref.data) == 0
    for broken in [ref.front, ref.back, lambda: ref[0], lambda: ref[-1]]:
        with pytest.raises((IndexError, RuntimeError)):
            broken()


def test_sizes_and_strides_of_tensors_are_refs() -> None:
    sizes = at.empty((2, 3, 4)).sizes()
    assert isinstance(sizes, c10.ArrayRef)
    assert c10.ArrayRef(sizes) == (2, 3, 4)
    assert caffe2.Tensor((5, 6), "cpu").sizes() == [5, 6]
    assert at.empty((2, 3)).strides() == (3, 1)
    assert at.empty(()).sizes().empty()


@pytest.mark.parametrize("index", [3, -4, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**70])
def test_an_index_outside_is_an_index_error(index: int) -> None:
    ref = c10.ArrayRef([1, 2, 3])
    with pytest.raises(IndexError):
        ref[index]


def test_an_index_is_an_integer_of_any_kind() -> None:
    ref = c10.ArrayRef([1, 2, 3])
    assert ref[np.int64(1)] == 2
    assert ref[np.int8(-1)] == 3
    for index in ["0", 1.0, None]:
        with pytest.raises(TypeError):
            ref[index]


@given(
    st.lists(INT64, max_size=8), st.none() | st.integers(-10, 10), st.none() | st.integers(-10, 10)
)
def test_slices_have_the_values_of_a_slice_of_a_list(
    values: list[int], start: int | None, stop: int | None
) -> None:
    part = c10.ArrayRef(values)[start:stop]
    assert isinstance(part, c10.ArrayRef)
    assert part.vec() == values[start:stop]


@pytest.mark.parametrize("make", [list, np.array], ids=["list", "numpy"])
def test_slices_are_views_that_keep_the_memory(make: Callable[[Any], Any]) -> None:
    ref = c10.ArrayRef(make([10, 11, 12, 13, 14]))
    assert address(ref[2:4]) == address(ref) + 16
    assert address(ref.slice(3, 1)) == address(ref) + 24
    assert address(ref[1:][1:]) == address(ref) + 16
    part = ref[2:4]
    del ref
    gc.collect()
    assert part.vec() == [12, 13]


@given(st.lists(INT64, max_size=6), st.data())
def test_slice_takes_a_start_and_a_length(values: list[int], data: st.DataObject) -> None:
    ref = c10.ArrayRef(values)
    start = data.draw(st.integers(0, len(values)))
    count = data.draw(st.integers(0, len(values) - start))
    part = ref.slice(start, count)
    assert isinstance(part, c10.ArrayRef)
    assert part.vec() == values[start : start + count]


@pytest.mark.parametrize(
    ("start", "count"), [(0, 4), (2, 2), (4, 0), (-1, 1), (0, -1), (1, 2**63 - 1)]
)
def test_slice_refuses_a_start_or_length_outside(start: int, count: int) -> None:
    with pytest.raises((IndexError, ValueError, RuntimeError)):
        c10.ArrayRef([1, 2, 3]).slice(start, count)


@given(st.lists(INT64, max_size=8))
def test_a_ref_equals_any_sequence_of_the_same_ints(values: list[int]) -> None:
    ref = c10.ArrayRef(values)
    for make in SOURCES.values():
        other = make(values)
        assert ref == other
        assert (ref != other) is False
        assert ref.equals(other) is True
        assert (ref == make([*values, 1])) is False
        assert ref != make([*values, 1])
    assert values == ref
    assert tuple(values) == ref
    assert hash(ref) == hash(tuple(values))


def test_a_ref_equals_ranges_arrays_and_buffers_of_the_same_values() -> None:
    ref = c10.ArrayRef([0, 1, 2])
    assert ref == range(3)
    assert ref == array("i", [0, 1, 2])
    assert ref == np.array([0, 1, 2], dtype=np.int8)
    assert ref == memoryview(array("q", [0, 1, 2]))
    assert ref != range(1, 4)
    assert not ref.equals([0, 1, 3])
    assert not ref.equals([])


@pytest.mark.parametrize("other", [None, 3, "012", object(), [0, 1, None], [0, 1, 2**70]])
def test_a_ref_is_unequal_to_anything_else(other: object) -> None:
    ref = c10.ArrayRef([0, 1, 2])
    assert (ref == other) is False
    assert ref != other


def test_hash_makes_it_a_key() -> None:
    assert {(2, 3): "found"}[c10.ArrayRef([2, 3])] == "found"
    assert {at.empty((2, 3)).sizes(): "found"}[(2, 3)] == "found"


def test_contains_takes_integers_and_finds_no_other_types() -> None:
    ref = c10.ArrayRef([1, 2])
    assert np.int64(2) in ref
    assert "1" not in ref
    assert None not in ref


def test_vec_is_a_copy() -> None:
    ref = c10.ArrayRef([1, 2, 3])
    copied = ref.vec()
    assert type(copied) is list
    copied[0] = 99
    assert ref == [1, 2, 3]


@every_source
def test_data_is_a_read_only_int64_memoryview(make: Callable[[list[int]], Any]) -> None:
    data = c10.ArrayRef(make([7, -8, 9])).data
    assert isinstance(data, memoryview)
    assert data.readonly
    assert (data.ndim, data.itemsize, data.nbytes, data.shape) == (1, 8, 24, (3,))
    assert data.c_contiguous
    assert np.asarray(data).dtype == np.int64
    assert data.tolist() == [7, -8, 9]
    with pytest.raises(TypeError):
        data[0] = 1


def test_elements_cannot_be_assigned() -> None:
    ref = c10.ArrayRef([1, 2])
    with pytest.raises(TypeError):
        ref[0] = 3
    with pytest.raises(TypeError):
        del ref[0]
    assert ref == [1, 2]


def test_numpy_and_array_sources_are_viewed() -> None:
    for source in [np.array([1, 2, 3], dtype=np.int64), array("q", [1, 2, 3])]:
        ref = c10.ArrayRef(source)
        source[1] = 20
        assert ref == [1, 20, 3]
        kept = ref.data
        del ref
        gc.collect()
        assert kept.tolist() == [1, 20, 3]


def test_list_sources_are_copied() -> None:
    source = [1, 2, 3]
    ref = c10.ArrayRef(source)
    source[1] = 20
    source.clear()
    assert ref == [1, 2, 3]


def test_a_source_stays_alive() -> None:
    ref = c10.ArrayRef(np.arange(100_000, dtype=np.int64) + 0)
    gc.collect()
    assert (ref[0], ref[99_999], len(ref)) == (0, 99_999, 100_000)


def test_an_array_cannot_move_under_its_view() -> None:
    source = array("q", range(10))
    ref = c10.ArrayRef(source)
    with pytest.raises(BufferError):
        source.extend(range(100_000))
    assert ref == range(10)
    del ref
    source.append(10)


def test_strided_arrays_are_refused() -> None:
    with pytest.raises(c10.EnforceTypeError, match="contiguous"):
        c10.ArrayRef(np.arange(10, dtype=np.int64)[::3])


@pytest.mark.parametrize(
    "source",
    [5, None, object(), [1.5], ["a"], "12", [None], np.array([1.5]), array("d", [1.0])],
    ids=shown,
)
def test_sources_that_are_not_sequences_of_ints_are_refused(source: object) -> None:
    with pytest.raises(TypeError):
        c10.ArrayRef(source)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**200])
def test_values_beyond_int64_are_refused(value: int) -> None:
    with pytest.raises((OverflowError, ValueError, RuntimeError)):
        c10.ArrayRef([value])


def test_misaligned_arrays_are_refused() -> None:
    with pytest.raises(c10.EnforceTypeError, match="aligned"):
        c10.ArrayRef(np.frombuffer(bytes(17), np.int64, 2, offset=1))


def test_two_dimensions_are_refused() -> None:
    with pytest.raises(c10.EnforceTypeError, match="one dimension"):
        c10.ArrayRef(np.zeros((2, 2), dtype=np.int64))


@pytest.mark.parametrize("shape", [(), (0,), (4,), (2, 3, 4)])
def test_a_ref_is_a_shape_for_torch_numpy_and_the_bridge(shape: Sequence[int]) -> None:
    tensor = at.empty(shape)
    assert torch.empty(*tensor.sizes(), 1).shape == (*shape, 1)
    assert np.empty(tensor.sizes()).shape == tuple(shape)
    assert np.zeros(tensor.numel()).reshape(tensor.sizes()).shape == tuple(shape)
    assert at.empty(tensor.sizes()).shape == tuple(shape)
    assert caffe2.Tensor(tensor.sizes(), "cpu").sizes() == shape


def test_a_view_keeps_its_values_when_the_tensor_is_resized() -> None:
    tensor = at.empty((2, 3))
    sizes, strides = tensor.sizes(), tensor.strides()
    part, data = sizes[1:], sizes.data
    tensor.resize_(4, 5, 6, 7, 8)
    assert (sizes, strides, part) == ((2, 3), (3, 1), (3,))
    assert data.tolist() == [2, 3]
    tensor.resize_(1)
    assert (sizes, strides, part) == ((2, 3), (3, 1), (3,))
    assert tensor.sizes() == (1,)


def test_a_view_keeps_its_values_when_a_caffe2_tensor_is_resized() -> None:
    tensor = caffe2.Tensor((2, 3), "cpu")
    sizes, strides = tensor.sizes(), tensor.strides()
    tensor.Resize(7, 8, 9)
    tensor.Reshape((9, 8, 7))
    assert (sizes, strides) == ((2, 3), (3, 1))
    assert tensor.sizes() == (9, 8, 7)


def test_a_view_keeps_its_values_when_the_tensor_is_freed() -> None:
    views = [at.empty((2, number)).sizes() for number in range(100)]
    data = [view.data for view in views]
    gc.collect()
    garbage = [at.empty((9, 9)) for _ in range(200)]  # Reuses the memory that was freed.
    assert len(garbage) == 200
    assert [view.vec() for view in views] == [[2, number] for number in range(100)]
    del views
    assert [view.tolist() for view in data] == [[2, number] for number in range(100)]


@pytest.mark.parametrize("n", [3, 20])
def test_a_view_of_a_view_sees_the_changes_that_the_view_sees(n: int) -> None:
    source = np.arange(n, dtype=np.int64)
    views = [c10.ArrayRef(c10.ArrayRef(source)), c10.ArrayRef(source)[:], c10.ArrayRef(source)]
    views += [c10.ArrayRef(views[0][1:])]
    source[1] = -7
    assert [view[len(view) - n + 1] for view in views] == [-7, -7, -7, -7]


VIEWS: dict[str, Callable[[c10.ArrayRef], c10.ArrayRef]] = {
    "index": lambda ref: ref[:],
    "slice": lambda ref: ref.slice(0, 9),
    "ArrayRef": c10.ArrayRef,
}


@pytest.mark.parametrize("again", VIEWS)
@isolated
def test_views_of_views_do_not_hold_each_other_in_a_chain(again: str) -> None:
    """A chain would end one link inside the other, until the stack is full."""
    ref = c10.ArrayRef(range(9))
    for _ in range(300_000):
        ref = VIEWS[again](ref)
    assert ref == range(9)
    del ref


class Endless:
    """What may be indexed by anything, and has no length."""

    def __getitem__(self, index: int) -> int:
        if index > 1000:
            raise AssertionError("asked for all of it")
        return 0


def test_mappings_sets_and_iterators_are_unequal() -> None:
    ref = c10.ArrayRef([0, 1])
    for other in ({0: 1, 1: 2}, MappingProxyType({0: 1, 1: 2}), {0, 1}, Endless(), iter([0, 1])):
        assert (ref == other) is False
    assert ref == UserList([0, 1])


def test_sums_with_tuples_are_tuples() -> None:
    ref = c10.ArrayRef([2, 3, 4])
    assert ref[:-1] + (5,) == (2, 3, 5)
    assert (1,) + ref == (1, 2, 3, 4)
    assert ref + ref == (2, 3, 4, 2, 3, 4)
    for found in (ref + (5,), (1,) + ref, ref + ref):
        assert isinstance(found, tuple)
    assert (ref.numel(), c10.ArrayRef([]).numel(), c10.ArrayRef([3, 0]).numel()) == (24, 1, 0)
    for wrong in (lambda: ref + [1], lambda: [1] + ref, lambda: ref + 1):
        with pytest.raises(TypeError):
            wrong()


class TestShape:
    def test_it_is_a_tuple_that_counts_its_elements(self) -> None:
        shape = at.zeros(2, 3, 4).shape
        assert isinstance(shape, tuple)
        assert (shape, hash(shape), repr(shape)) == ((2, 3, 4), hash((2, 3, 4)), "(2, 3, 4)")
        assert (shape.numel(), shape[1], shape[-1]) == (24, 3, 4)
        assert at.zeros(()).shape.numel() == 1

    def test_slices_sums_and_products_count_their_elements_too(self) -> None:
        shape = at.zeros(2, 3, 4).shape
        for found in (shape[:-1], shape[::-1], shape + (5,), (5,) + shape, shape * 2, 2 * shape):
            assert found.numel() == math.prod(found)
        assert (5,) + shape == (5, 2, 3, 4)
        with pytest.raises(TypeError):
            shape + [1]

    def test_it_goes_where_sizes_go(self) -> None:
        shape = at.zeros(2, 3).shape
        assert torch.zeros(shape).shape == np.zeros(shape).shape == at.zeros(shape).shape == shape

    def test_a_copy_by_pickle_is_a_tuple(self) -> None:
        assert type(pickle.loads(pickle.dumps(at.zeros(2).shape))) is tuple
