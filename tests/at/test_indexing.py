# SPDX-License-Identifier: Apache-2.0
"""Basic `[]` indexing and assignment, against NumPy on the same values."""

from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10
from tests.helpers.ids import shown

from .comparing import ERRORS, address, expect_like_numpy

INDEXES: list[tuple[tuple[int, ...], Any]] = [
    ((4, 5), 0),
    ((4, 5), -1),
    ((4, 5), (1, 2)),
    ((4, 5), (-4, -5)),
    ((4, 5), slice(None)),
    ((4, 5), slice(1, 3)),
    ((4, 5), slice(None, None, 2)),
    ((4, 5), slice(None, None, -1)),
    ((4, 5), slice(3, 0, -2)),
    ((4, 5), slice(-99, 99)),
    ((4, 5), slice(3, 1)),
    ((4, 5), slice(2**62, None, -(2**62))),
    ((4, 5), slice(None, None, 2**63 - 1)),
    ((4, 5), slice(None, None, -(2**63))),
    ((4, 5), slice(1, None, 2**70)),
    ((4, 5), slice(None, 1, -(2**70))),
    ((4, 5), (slice(None), 2)),
    ((4, 5), (slice(None, None, -1), slice(4, None, -2))),
    ((4, 5), None),
    ((4, 5), (None, 0, None)),
    ((4, 5), ...),
    ((4, 5), (..., 0)),
    ((4, 5), (0, ...)),
    ((4, 5), (0, ..., 0)),
    ((4, 5), (None, ..., None)),
    ((4, 5), ()),
    ((2, 3, 4, 5), (1, ..., slice(None, None, -2))),
    ((2, 3, 4, 5), (..., None, slice(1, 2), 0)),
    ((4, 5), np.int64(2)),
    ((4, 5), (np.uint8(2), np.int8(-1))),
    ((4, 5), slice(np.int64(1), np.int64(3))),
    ((), ()),
    ((), ...),
    ((), None),
    ((), (None, ..., None)),
    ((0, 3), slice(None)),
    ((0, 3), (slice(None, None, -1), 1)),
    ((2, 0, 3), (1, slice(None), slice(0, 2))),
]
every_index = pytest.mark.parametrize(
    ("shape", "index"), INDEXES, ids=[f"{shape}{index}" for shape, index in INDEXES]
)


def both(shape: tuple[int, ...], dtype: Any = np.float32) -> tuple[at.Tensor, np.ndarray]:
    """A tensor over the memory of an array 0, 1, 2, …"""
    array = np.arange(int(np.prod(shape, dtype=int)), dtype=dtype).reshape(shape)
    return bridge.from_dlpack(array), array


@every_index
def test_an_index_reads_as_numpy_at_the_same_address(shape: tuple[int, ...], index: Any) -> None:
    ours, theirs = both(shape)
    expect_like_numpy(ours[index], theirs[index])
    view = theirs[index]
    if isinstance(view, np.ndarray) and view.size:
        assert ours[index].data_ptr() == address(view)


@every_index
def test_a_result_shares_memory(shape: tuple[int, ...], index: Any) -> None:
    ours, theirs = both(shape)
    expected = theirs.copy()
    expected[index] = -5
    ours[index].fill_(-5)
    np.testing.assert_array_equal(theirs, expected)


@every_index
def test_assigning_a_scalar_writes_as_numpy(shape: tuple[int, ...], index: Any) -> None:
    ours, theirs = both(shape)
    expected = theirs.copy()
    for value in [7, 2.5, True, np.float64(3.5), np.array(4.5), torch.tensor(9), at.tensor(8.5)]:
        expected[index] = float(value)
        ours[index] = value
        np.testing.assert_array_equal(theirs, expected)
        assert ours.tolist() == expected.tolist()


@every_index
def test_assigning_an_array_writes_as_numpy(shape: tuple[int, ...], index: Any) -> None:
    ours, theirs = both(shape)
    shape_of_value = np.shape(theirs[index])
    value = np.asarray(np.random.default_rng(0).random(shape_of_value), dtype=np.float32)
    expected = np.zeros_like(theirs)
    expected[index] = value
    values: list[Any] = [value, bridge.from_dlpack(value), torch.from_numpy(value.copy())]
    for other in values:
        theirs.fill(0)
        ours[index] = other
        np.testing.assert_array_equal(theirs, expected)


def test_assignment_touches_nothing_else() -> None:
    ours, theirs = both((4, 5))
    ours[1:3, ::2] = np.full((2, 3), -1.0)
    expected = np.arange(20, dtype=np.float32).reshape(4, 5)
    expected[1:3, ::2] = -1
    np.testing.assert_array_equal(theirs, expected)


@pytest.mark.parametrize(
    "value_shape", [(5,), (1, 5), (4, 1), (1,), (1, 1), (), (1, 4, 5), (1, 1, 1)], ids=str
)
def test_assignment_broadcasts_the_value(value_shape: tuple[int, ...]) -> None:
    value = np.random.default_rng(1).random(value_shape)
    for other in [value, bridge.asarray(value), torch.from_numpy(np.asarray(value))]:
        ours, theirs = both((4, 5))
        expected = theirs.copy()
        expected[:, ::-1] = value
        ours[:, ::-1] = other
        np.testing.assert_array_equal(theirs, expected)


def test_assignment_takes_lists() -> None:
    ours, theirs = both((2, 3))
    ours[0] = [7, 8, 9]
    ours[:, 1] = [1.5, 2.5]
    assert theirs.tolist() == [[7.0, 1.5, 9.0], [3.0, 2.5, 5.0]]


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (np.int32, 2.75, 2),
        (np.int32, np.array([2.75]), 2),
        (np.float32, 3, 3.0),
        (np.bool_, 2, True),
        (np.bool_, np.array([0.0]), False),
        (np.complex64, 1.5, 1.5 + 0j),
        (np.complex64, 1 + 2j, 1 + 2j),
        (np.uint8, 255, 255),
        (np.int64, 2**53 + 1, 2**53 + 1),
        (np.uint64, 2**64 - 1, 2**64 - 1),
        (np.float64, np.float32(0.5), 0.5),
    ],
    ids=repr,
)
def test_assignment_converts_the_value_to_the_type_of_the_tensor(
    dtype: Any, value: Any, expected: Any
) -> None:
    theirs = np.zeros(3, dtype=dtype)
    ours = bridge.from_dlpack(theirs)
    ours[1:2] = value
    assert theirs.tolist() == np.array([0, expected, 0], dtype=dtype).tolist()


def test_augmented_assignment_writes_the_indexed_elements() -> None:
    ours, theirs = both((2, 3))
    ours[0] += 10
    ours[:, 1] *= 2
    assert theirs.tolist() == [[10.0, 22.0, 12.0], [3.0, 8.0, 5.0]]


@pytest.mark.parametrize(
    ("target", "source"),
    [
        (slice(1, None), slice(None, -1)),
        (slice(None, -1), slice(1, None)),
        (slice(None), slice(None, None, -1)),
        (slice(None, None, -1), slice(None)),
        (slice(0, 6, 2), slice(0, 3)),
        (slice(2, 5), slice(4, 1, -1)),
        (slice(None), slice(None)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("size", [8, 5000])
def test_overlapping_assignment_is_right_or_refused(
    target: slice, source: slice, size: int
) -> None:
    ours, theirs = both((size,))
    before, expected = theirs.copy(), theirs.copy()
    expected[target] = expected[source].copy()
    try:
        ours[target] = ours[source]
    except RuntimeError:
        expected = before
    np.testing.assert_array_equal(theirs, expected)


def test_assigning_a_transpose_to_itself_is_right_or_refused() -> None:
    ours, theirs = both((40, 40))
    before = theirs.copy()
    expected = theirs.T.copy()
    try:
        ours[:] = ours.t()
    except RuntimeError:
        expected = before
    np.testing.assert_array_equal(theirs, expected)


@pytest.mark.parametrize(
    ("shape", "index"),
    [
        ((4, 5), 4),
        ((4, 5), -5),
        ((4, 5), (0, 5)),
        ((4, 5), (0, 0, 0)),
        ((4, 5), 2**63),
        ((4, 5), (slice(None), slice(None), slice(None))),
        ((), 0),
        ((), slice(None)),
        ((0, 3), 0),
        ((4, 5), (..., ...)),
        ((4, 5), "a"),
        ((4, 5), 1.0),
        ((4, 5), (0, object())),
        ((4, 5), slice(None, None, 0)),
        ((4, 5), slice("a", None)),
        ((4, 5), slice(0.5, None)),
    ],
    ids=shown,
)
def test_wrong_indexes_are_refused_and_change_nothing(shape: tuple[int, ...], index: Any) -> None:
    ours, theirs = both(shape)
    with pytest.raises((*ERRORS, OverflowError)) as expected:
        theirs[index]
    with pytest.raises((*ERRORS, OverflowError)) as met:
        ours[index]
    if expected.type is IndexError and isinstance(index, int) and index < 2**63:
        assert issubclass(met.type, IndexError)
    with pytest.raises((*ERRORS, OverflowError)):
        ours[index] = 1
    np.testing.assert_array_equal(ours.numpy(), both(shape)[1])


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (slice(None), np.zeros(4)),
        (0, np.zeros((2, 5))),
        ((0, 0), np.zeros(2)),
        (slice(0, 2), np.zeros((3, 5))),
        (slice(None), [[1.0, 2.0]]),
        (slice(None), "text"),
        (slice(None), object()),
        (slice(None), [[1], [1, 2]]),
    ],
    ids=shown,
)
def test_wrong_values_are_refused_and_change_nothing(index: Any, value: Any) -> None:
    ours, theirs = both((4, 5))
    before = theirs.copy()
    with pytest.raises((*ERRORS, BufferError)):
        ours[index] = value
    np.testing.assert_array_equal(theirs, before)


@pytest.mark.parametrize(
    "index",
    [range(3, 0, -1), np.array([3, 0], np.uint16), np.array([[1], [2]], np.uint64)],
    ids=["range", "uint16", "uint64"],
)
def test_integers_of_every_kind_serve_as_an_index(index: Any) -> None:
    ours, theirs = both((4, 5))
    np.testing.assert_array_equal(ours[index].numpy(), theirs[index])
    ours[index] = 7.0
    assert (theirs[index] == 7).all()


class Resizing:
    """An index that has another say in what is indexed."""

    def __init__(self, tensor: at.Tensor, index: int) -> None:
        self.tensor, self.index = tensor, index

    def __index__(self) -> int:
        self.tensor.resize_(2)
        return self.index


def of_six_dimensions() -> at.Tensor:
    return at.arange(64, dtype="int32").view(2, 2, 2, 2, 2, 2)


@pytest.mark.parametrize(
    "index",
    [
        lambda one: (..., one),
        lambda one: (..., slice(one, 2)),
        lambda one: (..., slice(None, None, one), slice(0, 1)),
        lambda one: (one, 0, 0, 0, 0, 1),
        lambda one: (slice(0, one), 0, slice(0, 1)),
    ],
)
def test_an_index_that_resizes_the_tensor_reads_the_old_elements(index: Any) -> None:
    tensor, theirs = of_six_dimensions(), np.arange(64, dtype=np.int32).reshape([2] * 6)
    found = tensor[index(Resizing(tensor, 1))]
    np.testing.assert_array_equal(found.numpy(), theirs[index(1)])
    assert tensor.shape == (2,)


@pytest.mark.parametrize(
    "view",
    [
        lambda tensor, one: tensor[one:],
        lambda tensor, one: tensor.slice(5, one),
        lambda tensor, one: tensor.narrow(5, one, 1),
        lambda tensor, one: tensor.select(5, one),
        lambda tensor, one: tensor.unfold(5, one, 1),
        lambda tensor, one: tensor.transpose(5, one),
        lambda tensor, one: tensor.flatten(one),
        lambda tensor, one: tensor.squeeze((5, one)),
        lambda tensor, one: tensor.view(one, 64),
    ],
)
def test_an_argument_that_resizes_the_tensor_reads_memory_that_is_alive(view: Any) -> None:
    tensor = of_six_dimensions()
    try:
        found = view(tensor, Resizing(tensor, 1))
    except c10.EnforceNotMet:
        pass  # of two elements in one dimension there is no such view
    else:
        assert set(np.ravel(found.numpy())) <= set(range(64))
    assert tensor.tolist() == [0, 1]


def test_an_index_too_large_for_int64_is_out_of_range() -> None:
    ours, _ = both((4, 5))
    with pytest.raises(IndexError, match=str(2**64 - 1)):
        ours[np.array([2**64 - 1], np.uint64)]


def test_in_finds_an_element_and_refuses_an_operand_without_a_number() -> None:
    ours, _ = both((2, 3))
    assert 3 in ours
    assert np.float32(9) not in ours
    for no_number in ("a", None, [1, 2]):
        with pytest.raises(TypeError, match=type(no_number).__name__):
            no_number in ours  # noqa: B015  the operator is what is tested


def test_iteration_gives_rows_that_share_memory() -> None:
    ours, theirs = both((3, 2))
    rows = list(ours)
    assert [row.tolist() for row in rows] == theirs.tolist()
    rows[1].fill_(9)
    assert theirs[1].tolist() == [9.0, 9.0]
    first, second, third = ours
    assert (first.shape, third.tolist()) == ((2,), [4.0, 5.0])
    assert second.data_ptr() == ours.data_ptr() + 8
    assert list(at.zeros((0, 3))) == []
    with pytest.raises(TypeError):
        list(at.zeros(()))


def test_elements_cannot_be_deleted() -> None:
    with pytest.raises((TypeError, AttributeError, NotImplementedError)):
        del at.zeros((3,))[0]


def test_views_keep_their_memory() -> None:
    row = at.arange(6, dtype="int64").view(2, 3)[1]
    garbage = [at.zeros((2, 3), "int64") for _ in range(20)]
    assert len(garbage) == 20
    assert row.tolist() == [3, 4, 5]
    assert row.dtype() == c10.int64
