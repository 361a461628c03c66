# SPDX-License-Identifier: Apache-2.0
"""Strings as elements: `bytes` that live with the buffer and are copied deeply."""

from typing import Any

import numpy as np
import pytest

from bridge import c10, caffe2
from tests.helpers.ids import shown

from .state import filled, refused, values


@pytest.mark.parametrize("spelling", [c10.string, "string", bytes, str], ids=repr)
def test_strings_are_bytes_and_empty_at_first(spelling: Any) -> None:
    tensor = caffe2.Tensor((2, 2), "cpu")
    view = tensor.mutable_data(spelling)
    assert list(view) == [b""] * 4
    assert tensor.IsType(c10.string)
    assert tensor.dtype() == c10.string
    assert tensor.dtype().is_pod is False
    view[0], view[-1] = b"first", b"\x00\xff" * 100
    assert values(tensor) == [b"first", b"", b"", b"\x00\xff" * 100]
    assert tensor.data("string")[3] == b"\x00\xff" * 100


def test_a_view_of_objects_is_a_sequence() -> None:
    view = filled((4,), "string").mutable_data("string")
    assert len(view) == 4
    assert view[0] == b"1"
    assert view[-1] == b"4"
    assert list(view[1:3]) == [b"2", b"3"]
    assert b"3" in view
    assert list(reversed(view)) == [b"4", b"3", b"2", b"1"]
    view[2] = b"three"
    assert [bytes(element) for element in view] == [b"1", b"2", b"three", b"4"]
    for index in (4, -5):
        with pytest.raises(IndexError):
            view[index]
        with pytest.raises(IndexError):
            view[index] = b""


@pytest.mark.parametrize("wrong", [5, 1.5, None, object(), [b"list"], caffe2.Tensor()], ids=shown)
def test_strings_refuse_other_elements(wrong: Any) -> None:
    tensor = filled((2,), "string")
    view = tensor.mutable_data("string")
    with refused(tensor, error=(c10.EnforceNotMet, TypeError)):
        view[0] = wrong


def test_sizes_and_bytes_count_strings_as_elements() -> None:
    tensor = filled((3, 2), "string")
    assert tensor.numel() == 6
    assert tensor.nbytes() == 6 * tensor.itemsize()
    assert tensor.capacity_nbytes() == tensor.nbytes()
    assert tensor.itemsize() == tensor.dtype().itemsize > 0
    assert "string" in repr(tensor)


def test_resize_keeps_strings_that_fit() -> None:
    tensor = filled((4,), "string")
    tensor.Resize(2)
    assert values(tensor) == [b"1", b"2"]
    tensor.Resize(3)
    assert values(tensor) == [b"1", b"2", b"3"]
    tensor.Resize(5)
    assert tensor.storage_initialized() is False
    assert list(tensor.mutable_data("string")) == [b""] * 5


def test_no_buffer_outlives_a_change_of_kind() -> None:
    tensor = filled((4,), "string")
    tensor.mutable_data("uint8")[:] = 7
    assert values(tensor) == [7, 7, 7, 7]
    assert tensor.capacity_nbytes() == 4
    assert list(tensor.mutable_data("string")) == [b""] * 4


def test_an_emptied_tensor_takes_another_type_and_grows() -> None:
    """The real one takes the memory of the strings for numbers, and the other way round."""
    for first, second in [("string", "uint8"), ("uint8", "string"), ("int64", "string")]:
        tensor = filled((4,), first)
        tensor.Resize(0)
        tensor.mutable_data(second)
        tensor.Resize(1)
        view = tensor.mutable_data(second)
        view[0] = b"x" if second == "string" else 1
        assert values(tensor) == [b"x" if second == "string" else 1]
        tensor.Resize(3)
        tensor.CopyFrom(filled((2,), second))
        assert len(values(tensor)) == 2


def test_a_sharer_of_another_kind_gets_no_objects_as_numbers() -> None:
    """The real one shows the other the inside of its strings."""
    tensor = filled((4,), "int64")
    alias = tensor.Alias()
    strings = tensor.mutable_data("string")
    strings[0] = b"one"
    try:
        seen = alias.mutable_data("int64")
    except c10.EnforceNotMet:
        seen = np.zeros(0)
    seen[:] = -1
    assert strings[0] == b"one"
    assert strings[3] == b""


def test_copies_of_strings_are_deep() -> None:
    tensor = filled((3,), "string")
    cloned, other = tensor.Clone(), caffe2.Tensor("cpu")
    other.CopyFrom(tensor)
    tensor.mutable_data("string")[0] = b"changed"
    assert values(cloned) == values(other) == [b"1", b"2", b"3"]
    assert values(caffe2.Tensor(tensor, "cpu")) == [b"changed", b"2", b"3"]


def test_sharers_see_each_others_strings() -> None:
    tensor = filled((3,), "string")
    alias, same = tensor.Alias(), tensor.UnsafeSharedInstance()
    shared = caffe2.Tensor((3, 1), "cpu")
    shared.ShareData(tensor)
    alias.mutable_data("string")[1] = b"new"
    assert values(tensor) == values(same) == values(shared) == [b"1", b"new", b"3"]
    tensor.CopyFrom(filled((2,), "string", first=8))
    assert values(alias) == [b"8", b"9", b"3"]


def test_many_strings_are_held_and_extended() -> None:
    count = 100_000
    tensor = caffe2.Tensor((count,), "cpu")
    view = tensor.mutable_data("string")
    for i in range(count):
        view[i] = b"%d" % i
    tensor.Extend(1)
    assert tensor.data()[count - 1] == b"99999"
    assert sum(len(element) for element in tensor.data()) == 488_890
