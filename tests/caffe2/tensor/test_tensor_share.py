# SPDX-License-Identifier: Apache-2.0
"""`UnsafeSharedInstance`, `Alias`, `Clone`, `CopyFrom`, `ShareData`: who sees whose changes."""

import copy
from typing import Any

import pytest

from bridge import at, c10, caffe2
from tests.helpers.ids import shown

from .state import filled, refused, state_of, values


def test_unsafe_shared_instance_is_the_same_tensor() -> None:
    tensor = filled((2, 3))
    shared = tensor.UnsafeSharedInstance()
    assert shared.is_same(tensor)
    assert tensor.is_same(shared)
    assert shared.unsafeGetTensorImpl() is tensor.unsafeGetTensorImpl()
    assert tensor.storage().use_count() == 1
    shared.Resize(3, 2)
    shared.mutable_data("int64")[:] = range(6)
    assert tensor.sizes() == (3, 2)
    assert values(tensor) == [0, 1, 2, 3, 4, 5]
    tensor.FreeMemory()
    assert shared.storage_initialized() is False
    assert caffe2.Tensor().UnsafeSharedInstance().defined() is False


def test_alias_shares_data_and_not_metadata() -> None:
    tensor = filled((2, 3))
    alias = tensor.Alias()
    assert not alias.is_same(tensor)
    assert alias.storage().use_count() == tensor.storage().use_count() == 2
    alias.Reshape((6,))
    alias.mutable_data("float32")[0] = 11
    assert tensor.sizes() == (2, 3)
    assert tensor.numpy()[0, 0] == 11.0
    alias.FreeMemory()
    assert tensor.storage().use_count() == 1
    assert values(tensor)[0] == 11.0


def test_alias_needs_content() -> None:
    tensor = caffe2.Tensor((2,), "cpu")
    with refused(tensor):
        tensor.Alias()
    empty = caffe2.Tensor((0, 3), "cpu")
    assert empty.Alias().sizes() == (0, 3)


@pytest.mark.parametrize("clone", [lambda t: t.Clone(), copy.deepcopy], ids=["Clone", "deepcopy"])
def test_clone_shares_nothing(clone: Any) -> None:
    tensor = filled((2, 3))
    tensor.ReserveSpace(7)
    tensor.mutable_data("float32")[:] = range(6)
    cloned = clone(tensor)
    assert cloned.sizes() == (2, 3)
    assert cloned.IsType("float32")
    assert cloned.capacity_nbytes() == 24
    assert cloned.storage().use_count() == tensor.storage().use_count() == 1
    assert values(cloned) == values(tensor)
    cloned.mutable_data("float32")[:] = 9
    assert values(tensor) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_clone_of_a_view_into_the_middle_copies_its_elements_only() -> None:
    tensor = caffe2.Tensor(at.arange(8).slice(0, 2, 5))
    cloned = tensor.Clone()
    assert values(cloned) == [2, 3, 4]
    assert cloned.capacity_nbytes() == 24


def test_clone_needs_content() -> None:
    tensor = caffe2.Tensor((2,), "cpu")
    with refused(tensor):
        tensor.Clone()
    with refused(tensor):
        copy.deepcopy(tensor)
    assert caffe2.Tensor((0, 3), "cpu").Clone().sizes() == (0, 3)


def test_copy_from_takes_sizes_type_and_elements() -> None:
    tensor, source = caffe2.Tensor("cpu"), filled((2, 3), "int32")
    tensor.CopyFrom(source)
    assert tensor.sizes() == (2, 3)
    assert tensor.IsType("int32")
    assert values(tensor) == values(source)
    assert tensor.raw_data() != source.raw_data()
    source.mutable_data("int32")[:] = 0
    assert values(tensor) == [1, 2, 3, 4, 5, 6]


def test_copy_from_keeps_a_buffer_that_fits_and_sharers_see_it() -> None:
    tensor = filled((4,))
    alias, address = tensor.Alias(), tensor.raw_data()
    tensor.CopyFrom(filled((2,), first=70))
    assert tensor.raw_data() == address
    assert tensor.capacity_nbytes() == 16
    assert values(tensor) == [70.0, 71.0]
    assert values(alias) == [70.0, 71.0, 3.0, 4.0]
    tensor.CopyFrom(filled((5,)), False)
    assert tensor.raw_data() != address
    assert tensor.storage().use_count() == 1
    assert values(alias) == [70.0, 71.0, 3.0, 4.0]


def test_copy_from_of_another_type_leaves_the_sharers() -> None:
    tensor = filled((4,))
    alias = tensor.Alias()
    tensor.CopyFrom(filled((2,), "int8"))  # it would fit
    assert tensor.IsType("int8")
    assert tensor.capacity_nbytes() == 2
    assert tensor.storage().use_count() == alias.storage().use_count() == 1
    assert values(alias) == [1.0, 2.0, 3.0, 4.0]


def test_copy_from_itself_changes_nothing() -> None:
    tensor = filled((4,))
    before = state_of(tensor)
    tensor.CopyFrom(tensor)
    tensor.CopyFrom(tensor.UnsafeSharedInstance(), async_=True)
    assert state_of(tensor) == before
    alias = tensor.Alias()
    alias.CopyFrom(tensor)
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0]


def test_copy_from_overlapping_memory_moves_the_elements() -> None:
    """The real one copies between overlapping ranges as if they did not."""
    for start, end in [(0, 6), (2, 8)]:
        whole = at.arange(8)
        source = caffe2.Tensor(whole.slice(0, 1, 7))
        caffe2.Tensor(whole.slice(0, start, end)).CopyFrom(source)
        expected = list(range(8))
        expected[start:end] = range(1, 7)
        assert whole.tolist() == expected


def test_copy_from_refuses_a_source_without_content() -> None:
    tensor, unallocated = filled((2,)), caffe2.Tensor((2,), "cpu")
    with refused(tensor, unallocated):
        tensor.CopyFrom(unallocated)
    with refused(unallocated):
        unallocated.CopyFrom(unallocated)
    freed = filled((2,))
    freed.FreeMemory()
    with refused(tensor, freed):
        tensor.CopyFrom(freed)
    with refused(tensor):
        tensor.CopyFrom(caffe2.Tensor())
    tensor.CopyFrom(caffe2.Tensor("cpu"))
    assert tensor.sizes() == (0,)
    assert not tensor.dtype()


def test_copy_from_refuses_a_source_that_is_not_contiguous() -> None:
    source = filled((2, 3))
    at.Tensor(source).set_(at.Tensor(source).t())
    tensor = filled((2,))
    with refused(tensor, match="contiguous"):
        tensor.CopyFrom(source)


def test_share_data_shares_elements_and_keeps_sizes() -> None:
    tensor, source = caffe2.Tensor((3, 2), "cpu"), filled((2, 3))
    tensor.ShareData(source)
    assert tensor.sizes() == (3, 2)
    assert tensor.IsType("float32")
    assert tensor.raw_data() == source.raw_data()
    assert tensor.storage().use_count() == 2
    tensor.mutable_data("float32")[5] = 66
    assert values(source)[5] == 66.0
    tensor.ShareData(tensor)
    del source
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0, 5.0, 66.0]
    assert tensor.storage().use_count() == 1


def test_share_data_of_a_view_into_the_middle() -> None:
    whole = at.arange(8)
    tensor = caffe2.Tensor((2, 2), "cpu")
    tensor.ShareData(caffe2.Tensor(whole.slice(0, 3, 7)))
    assert values(tensor) == [3, 4, 5, 6]
    tensor.mutable_data("int64")[0] = 33
    assert whole.tolist()[3] == 33


def test_share_data_wants_as_many_elements_and_content() -> None:
    tensor = filled((4,))
    for source in (
        filled((3,)),
        filled((4, 2)),
        caffe2.Tensor((4,), "cpu"),
        caffe2.Tensor("cpu"),
        caffe2.Tensor(),
    ):
        with refused(tensor, source):
            tensor.ShareData(source)
    empty = caffe2.Tensor((0,), "cpu")
    empty.ShareData(caffe2.Tensor((0, 7), "cpu"))
    assert empty.sizes() == (0,)
    with refused(empty):
        empty.ShareData(caffe2.Tensor())


def test_growth_after_two_empty_tensors_share() -> None:
    """The real one overruns: the smaller allocation serves the larger tensor."""
    one, two = caffe2.Tensor((0,), "cpu"), caffe2.Tensor((0,), "cpu")
    two.ShareData(one)
    one.Resize(4)
    two.Resize(4000)
    one.mutable_data("float32")[:] = 1
    two.mutable_data("float32")[:] = 2
    assert len(two.data()) == 4000
    assert two.capacity_nbytes() >= 16000
    assert len(values(one)) == 4


@pytest.mark.parametrize("source", [None, 5, "cpu", [1.0], object()], ids=shown)
@pytest.mark.parametrize("method", ["CopyFrom", "ShareData", "ResizeLike"])
def test_sources_that_are_not_tensors_are_refused(method: str, source: Any) -> None:
    tensor = filled((2,))
    with refused(tensor, error=(c10.EnforceNotMet, TypeError)):
        getattr(tensor, method)(source)


def test_is_same_compares_the_tensor_impl() -> None:
    tensor = filled((2,))
    assert tensor.is_same(tensor)
    assert not tensor.is_same(tensor.Alias())
    assert not tensor.is_same(filled((2,)))
    assert not tensor.is_same(caffe2.Tensor())
    assert caffe2.Tensor().is_same(caffe2.Tensor())


def test_swap_exchanges_the_tensors() -> None:
    one, two = filled((2,)), filled((3,), "int64", first=7)
    same = one.UnsafeSharedInstance()
    one.swap(two)
    assert values(one) == [7, 8, 9]
    assert values(two) == [1.0, 2.0]
    assert two.is_same(same)
    one.swap(one)
    assert values(one) == [7, 8, 9]
    undefined = caffe2.Tensor()
    one.swap(undefined)
    assert one.defined() is False
    assert values(undefined) == [7, 8, 9]


@pytest.mark.cuda
def test_copy_from_copies_between_types_of_device() -> None:
    here, there = filled((2, 3)), caffe2.Tensor("cuda")
    there.CopyFrom(here)
    assert there.GetDeviceType() == c10.CUDA  # the destination stays where it is
    back = caffe2.Tensor("cpu")
    back.CopyFrom(there, async_=False)
    assert back.GetDeviceType() == c10.CPU
    assert values(back) == values(here)
    assert there.Clone().GetDeviceType() == c10.CUDA
    assert there.Alias().storage().use_count() == 2
    with refused(there):
        there.CopyFrom(filled((2,), "string"))
