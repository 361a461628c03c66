# SPDX-License-Identifier: Apache-2.0
"""Strings by the array: what goes in comes out, in place where the tensor is the blob's own."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

from bridge import c10, caffe2
from bridge.caffe2 import workspace
from bridge.caffe2.blobs.string_items import array_of_strings, plain_elements, put_elements


class Bytes(bytes):
    pass


class Text(str):
    __slots__ = ()


def objects(*values: Any) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


pytestmark = pytest.mark.usefixtures("fresh_workspace")


def fetched(array: np.ndarray[Any, Any]) -> list[Any]:
    workspace.FeedBlob("strings", array)
    result = workspace.FetchBlob("strings")
    assert result.dtype == object
    assert result.shape == array.shape
    flat: list[Any] = result.reshape(-1).tolist()
    assert {type(item) for item in flat} <= {bytes}
    return flat


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (objects(b"a", "b", b"", "", "ü", b"\0\0", b"\xff"),
         [b"a", b"b", b"", b"", b"\xc3\xbc", b"\0\0", b"\xff"]),
        (objects(Bytes(b"a"), Text("ü"), b"c"), [b"a", b"\xc3\xbc", b"c"]),
        (objects(*[b"%d" % i for i in range(9)])[::-2], [b"8", b"6", b"4", b"2", b"0"]),
        (objects(*[b"%d" % i for i in range(6)]).reshape(2, 3).T,
         [b"0", b"3", b"1", b"4", b"2", b"5"]),
        (objects(*[b"%d" % i for i in range(4)]).reshape(2, 2, order="F"),
         [b"0", b"2", b"1", b"3"]),
        (np.array(["x", "yü"]), [b"x", b"y\xc3\xbc"]),
        (np.array([b"x", b"yz"]), [b"x", b"yz"]),
        (objects(), []),
        (np.empty((3, 0, 2), object), []),
    ],
)  # fmt: skip
def test_arrays_of_strings_are_fetched_as_bytes_in_their_shape(
    array: np.ndarray[Any, Any], expected: list[bytes], again: bool
) -> None:
    if again:  # a blob that has a tensor of strings of that shape takes them in place
        workspace.FeedBlob("strings", np.full(array.shape, b"old", object))
    assert fetched(array) == expected


def test_a_scalar_array_of_strings_stays_scalar() -> None:
    array = np.array(b"one", object)
    workspace.FeedBlob("scalar", array)
    result = workspace.FetchBlob("scalar")
    assert result.shape == ()
    assert result.item() == b"one"


def test_strings_of_the_same_shape_go_into_the_elements_that_are_there() -> None:
    workspace.FeedBlob("strings", objects(b"a", b"b"))
    alias = workspace.Workspace.current.blobs["strings"].Get(caffe2.Tensor).Alias()
    view = alias.data("string")
    workspace.FeedBlob("strings", objects(b"c", "d"))
    assert list(view) == list(alias.data()) == [b"c", b"d"]
    workspace.FeedBlob("strings", objects(b"e"))
    assert list(view) == [b"c", b"d"]


@pytest.mark.parametrize("bad", [1, None, 1.5, object(), bytes, ["a"]])
def test_a_refused_array_changes_nothing(bad: Any) -> None:
    workspace.FeedBlob("strings", objects(b"a", b"b"))
    array = objects(b"x", None)
    array[1] = bad
    with pytest.raises(c10.EnforceNotMet, match="element 1 of the array"):
        workspace.FeedBlob("strings", array)
    assert workspace.FetchBlob("strings").tolist() == [b"a", b"b"]


def test_a_lone_surrogate_is_refused() -> None:
    workspace.FeedBlob("strings", objects(b"a", b"b"))
    with pytest.raises(c10.EnforceNotMet, match="surrogate"):
        workspace.FeedBlob("strings", objects("x", "\ud800"))
    assert workspace.FetchBlob("strings").tolist() == [b"a", b"b"]


def test_references_are_kept_and_given_back() -> None:
    one, two = bytes(range(1, 100)), bytes(range(2, 100))
    before = sys.getrefcount(one), sys.getrefcount(two)
    for _ in range(50):
        workspace.FeedBlob("strings", objects(one, two))
        workspace.FeedBlob("strings", objects(two, one))
        workspace.FetchBlob("strings")
    gc.collect()
    assert (sys.getrefcount(one), sys.getrefcount(two)) == (before[0] + 1, before[1] + 1)
    workspace.ResetWorkspace()
    gc.collect()
    assert (sys.getrefcount(one), sys.getrefcount(two)) == before


def test_plain_elements_are_of_the_very_classes() -> None:
    one = b"only one"
    items = plain_elements(objects(one, "x"))
    assert items == [one, b"x"]
    assert items[0] is one
    assert plain_elements(objects(one, Bytes(b"x"))) is None
    assert plain_elements(objects(3)) is None


def test_numbers_of_elements_are_checked() -> None:
    tensor = caffe2.empty([2], "string")
    with pytest.raises(ValueError, match="3 strings for 2 elements"):
        put_elements(tensor, [b"a", b"b", b"c"])
    put_elements(tensor, [b"a", b"b"])
    assert list(tensor.data("string")) == [b"a", b"b"]
    with pytest.raises(c10.EnforceNotMet):
        array_of_strings(caffe2.Tensor([2], "cpu"))


def test_a_tensor_smaller_than_its_storage_leaves_the_rest_alone() -> None:
    """A tensor with fewer elements than its storage has, as Resize down leaves it."""
    tensor = caffe2.empty([5], "string")
    put_elements(tensor, [b"a", b"b", b"c", b"d", b"e"])
    alias = tensor.Alias()
    tensor.Resize(2)
    put_elements(tensor, [b"x", b"y"])
    assert list(alias.data("string")) == [b"x", b"y", b"c", b"d", b"e"]
    assert array_of_strings(tensor).tolist() == [b"x", b"y"]


def test_elements_that_were_changed_from_outside_are_an_error() -> None:
    tensor = caffe2.empty([3], "string")
    tensor.data("string")._items.clear()
    with pytest.raises(RuntimeError, match="changed from outside"):
        put_elements(tensor, [b"a", b"b", b"c"])
    with pytest.raises(RuntimeError, match="changed from outside"):
        array_of_strings(tensor)


def test_a_tensor_of_numbers_is_not_read_as_strings() -> None:
    """Another thread may have made numbers of it after it was looked at."""
    numbers = caffe2.Tensor([3], [1, 2, 3])
    with pytest.raises(c10.EnforceNotMet, match="not strings"):
        array_of_strings(numbers)
