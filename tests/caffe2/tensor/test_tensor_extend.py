# SPDX-License-Identifier: Apache-2.0
"""`Extend`, `ExtendTo` and `ShrinkTo`."""

import gc
from typing import Any

import pytest

from bridge import at, c10, caffe2

from .state import filled, refused, values


def test_extend_keeps_the_data() -> None:
    tensor = filled((2, 3))
    tensor.Extend(1)
    assert tensor.sizes() == (3, 3)
    assert tensor.strides() == (3, 1)
    assert values(tensor)[:6] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    tensor.ExtendTo(5)
    assert tensor.sizes() == (5, 3)
    assert values(tensor)[:6] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("rows", "more", "percent", "capacity"),
    [
        (10, 1, 40.0, 14),
        (10, 1, 33.3, 14),
        (10, 5, 40.0, 15),
        (3, 1, 33.3, 4),
        (5, 1, 0.0, 6),
        (5, 1, -50.0, 6),
        (1, 1, 900.0, 10),
        (100, 1, 1.0, 101),
    ],
)
def test_extend_grows_the_memory_by_the_percentage(
    rows: int, more: int, percent: float, capacity: int
) -> None:
    tensor = filled((rows, 2), "int32")
    tensor.Extend(more, percent)
    assert tensor.size(0) == rows + more
    assert tensor.capacity_nbytes() == capacity * 8


def test_extend_grows_the_memory_by_forty_percent_unless_told_otherwise() -> None:
    tensor, other = filled((10,)), filled((10,))
    tensor.Extend(1)
    other.ExtendTo(11)
    assert tensor.capacity_nbytes() == other.capacity_nbytes() == 14 * 4
    by_name = filled((10,))
    by_name.Extend(num=1, growthPct=100.0)
    assert by_name.capacity_nbytes() == 80
    by_name.ExtendTo(num=20, growthPct=0.0)
    assert by_name.sizes() == (20,)


def test_extend_within_the_capacity_stays() -> None:
    tensor = filled((10,))
    tensor.Extend(1)
    address = tensor.raw_data()
    tensor.Extend(3)
    assert tensor.raw_data() == address
    assert tensor.sizes() == (14,)
    tensor.Extend(1)
    assert tensor.raw_data() != address
    assert values(tensor)[:10] == [float(i) for i in range(1, 11)]


def test_extend_without_memory_only_resizes() -> None:
    for tensor in (caffe2.Tensor((2, 3), "cpu"), caffe2.Tensor("cpu")):
        rows = tensor.size(0)
        tensor.Extend(4)
        assert tensor.size(0) == rows + 4
        assert tensor.storage_initialized() is False
        assert not tensor.dtype()
    freed = filled((2, 3))
    freed.FreeMemory()
    freed.ExtendTo(9)
    assert freed.sizes() == (9, 3)
    assert freed.storage_initialized() is False


def test_extend_by_nothing_changes_nothing() -> None:
    tensor = filled((2, 3))
    address = tensor.raw_data()
    tensor.Extend(0)
    tensor.ExtendTo(2)
    assert tensor.sizes() == (2, 3)
    assert tensor.raw_data() == address


def test_a_million_times_one_makes_few_allocations() -> None:
    tensor = filled((1,))
    stats = c10.GetAllocator("cpu").stats
    before = stats.allocations
    extend = tensor.Extend
    for _ in range(1_000_000):
        extend(1)
    assert c10.GetAllocator("cpu").stats.allocations - before < 60
    assert tensor.sizes() == (1_000_001,)
    assert tensor.capacity_nbytes() <= 1.4 * 4 * 1_000_002
    assert tensor.data()[0] == 1.0


def test_extend_of_a_shared_storage_leaves_the_sharer_its_memory() -> None:
    """The real one frees what the other still uses."""
    tensor = filled((4,))
    alias = tensor.Alias()
    view = alias.data()
    tensor.Extend(3)
    assert tensor.sizes() == (7,)
    assert values(tensor)[:4] == values(alias) == [1.0, 2.0, 3.0, 4.0]
    tensor.mutable_data("float32")[:] = 9
    assert values(alias) == view.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert alias.capacity_nbytes() >= 16


def test_extend_of_a_view_into_the_middle_keeps_its_elements() -> None:
    """The real one forgets the offset: it overruns, or moves the wrong elements."""
    for rows in (3, 5, 9, 40):
        whole = at.arange(8, dtype="float32")
        tensor = caffe2.Tensor(whole.slice(0, 5, 7))
        tensor.ExtendTo(rows)
        assert values(tensor)[:2] == [5.0, 6.0]
        tensor.mutable_data("float32")[:] = -1
        assert whole.tolist()[:5] == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.Extend(-1),
        lambda t: t.Extend(-(2**63)),
        lambda t: t.Extend(2**63 - 1),
        lambda t: t.Extend(2**64),
        lambda t: t.ExtendTo(1),
        lambda t: t.ExtendTo(-1),
        lambda t: t.ExtendTo(9, -1.0),
    ],
    ids=["-1", "min", "max", "2**64", "to fewer", "to -1", "to, shrinking"],
)
def test_extend_refuses_negative_and_overflowing_numbers(call: Any) -> None:
    for tensor in (filled((2, 3)), filled((2, 3), "string")):
        with refused(tensor, error=(c10.EnforceNotMet, MemoryError)):
            call(tensor)


@pytest.mark.parametrize("arguments", [("one",), (1, "forty"), (1.5,), (None,)], ids=repr)
def test_extend_refuses_arguments_that_are_not_numbers(arguments: tuple[Any, ...]) -> None:
    tensor = filled((2, 3))
    with refused(tensor, error=(c10.EnforceNotMet, TypeError)):
        tensor.Extend(*arguments)


@pytest.mark.parametrize("method", ["Extend", "ExtendTo", "ShrinkTo"])
def test_scalars_have_no_rows(method: str) -> None:
    for tensor in (filled(()), caffe2.Tensor((), "cpu")):
        with refused(tensor, match=method):
            getattr(tensor, method)(1)


@pytest.mark.parametrize("method", ["Extend", "ExtendTo", "ShrinkTo", "ReserveSpace", "Reshape"])
def test_tensors_that_are_not_contiguous_are_refused(method: str) -> None:
    tensor = filled((2, 3))
    aten = at.Tensor(tensor)
    aten.set_(aten.t())  # the same impl, from the other side
    assert tensor.is_contiguous() is False
    with refused(tensor, match="contiguous"):
        getattr(tensor, method)((3, 2) if method == "Reshape" else 3)


def test_extend_makes_empty_strings() -> None:
    tensor = filled((2,), "string")
    tensor.Extend(1)
    assert values(tensor) == [b"1", b"2", b""]
    tensor.mutable_data("string")[2] = b"three"
    tensor.Extend(5, 400.0)
    assert values(tensor) == [b"1", b"2", b"three", *[b""] * 5]
    tensor.Extend(2)  # spare room is constructed too
    assert values(tensor)[-2:] == [b"", b""]


def test_shrink_keeps_data_and_capacity() -> None:
    tensor = filled((4, 2))
    address = tensor.raw_data()
    caffe2.FLAGS.caffe2_keep_on_shrink = False
    try:
        tensor.ShrinkTo(3)
        tensor.ShrinkTo(outer_dim=1)
    finally:
        caffe2.FLAGS.caffe2_keep_on_shrink = True
    assert tensor.sizes() == (1, 2)
    assert tensor.raw_data() == address
    assert tensor.capacity_nbytes() == 32
    tensor.ShrinkTo(0)
    assert tensor.sizes() == (0, 2)
    assert tensor.capacity_nbytes() == 32
    tensor.Extend(4)
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


@pytest.mark.parametrize("rows", [5, 2**40, -1, -(2**63)])
def test_shrink_refuses_more_rows_and_negative_ones(rows: int) -> None:
    tensor = filled((4, 2))
    with refused(tensor, match="ShrinkTo"):
        tensor.ShrinkTo(rows)


def test_shrink_refuses_a_shared_storage() -> None:
    tensor = filled((4,))
    alias = tensor.Alias()
    with refused(tensor, alias, match="Resize"):  # says what to call instead
        tensor.ShrinkTo(2)
    with refused(tensor, alias):
        alias.ShrinkTo(4)
    del alias
    gc.collect()  # the frames of the refused calls
    tensor.ShrinkTo(2)
    assert values(tensor) == [1.0, 2.0]


def test_shrink_leaves_views_whole_and_other_wrappers_smaller() -> None:
    tensor = filled((4,))
    same = tensor.UnsafeSharedInstance()
    view, mutable = tensor.data(), tensor.mutable_data("float32")
    tensor.ShrinkTo(2)
    assert same.sizes() == (2,)
    mutable[3] = 44
    assert view.tolist() == [1.0, 2.0, 3.0, 44.0]
    assert len(tensor.data()) == 2


@pytest.mark.parametrize("dtype", ["uint8", "bool", "complex128", "bfloat16", "uint32", "string"])
def test_extend_and_shrink_keep_elements_of_every_type(dtype: str) -> None:
    tensor = filled((3, 2), dtype, first=0)
    before = values(tensor)
    tensor.Extend(20)
    tensor.ShrinkTo(3)
    assert values(tensor) == before
    assert tensor.sizes() == (3, 2)
    assert tensor.IsType(dtype)
