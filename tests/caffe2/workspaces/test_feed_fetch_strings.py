# SPDX-License-Identifier: Apache-2.0
"""Strings in blobs: plain ones, and tensors of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10, caffe2
from bridge.caffe2 import workspace
from bridge.caffe2.workspace import FeedBlob, FetchBlob, FetchTorch
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


class Text(str):
    """Text of a class of its own."""


class Bytes(bytes):
    """Bytes of a class of their own."""


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("", b""),
        (b"", b""),
        ("h\u00e9llo \U0001f600", "h\u00e9llo \U0001f600".encode()),
        (b"\xff\0nul \x80", b"\xff\0nul \x80"),
        (np.str_("ab"), b"ab"),
        (np.bytes_(b"ab"), b"ab"),
        (Text("sub"), b"sub"),
        (Bytes(b"sub"), b"sub"),
    ],
)
def test_a_plain_string_comes_back_as_bytes(value: Any, stored: bytes) -> None:
    assert FeedBlob("x", value) is True
    fetched = FetchBlob("x")
    assert type(fetched) is bytes
    assert fetched == stored
    blob = workspace.Workspace.current.blobs["x"]
    assert blob.IsType(bytes)
    assert blob.IsType(c10.string)
    assert not blob.is_tensor()
    with pytest.raises(c10.EnforceNotMet) as info:
        FetchTorch("x")
    refused(info.value, "string")


MIXED: list[Any] = [b"a", "h\u00e9", np.bytes_(b"q"), np.str_("r"), Text("t"), Bytes(b"b\0")]


@pytest.mark.parametrize(
    ("array", "stored"),
    [
        (np.array([b"a", b"bb\0"], object), [b"a", b"bb\0"]),
        (np.array(["a", "h\u00e9"], object), [b"a", "h\u00e9".encode()]),
        (np.array(MIXED, object), [b"a", "h\u00e9".encode(), b"q", b"r", b"t", b"b\0"]),
        (np.array([b"a", b"bb\0c"]), [b"a", b"bb\0c"]),
        (np.array(["a", "h\u00e9\U0001f600"]), [b"a", "h\u00e9\U0001f600".encode()]),
        (np.array(["a", "bc"], ">U2"), [b"a", b"bc"]),
        (np.array(["a", "a text that is long enough"], np.dtypes.StringDType()),
         [b"a", b"a text that is long enough"]),
        (np.array(b"x", object), b"x"),
        (np.array("x"), b"x"),
        (np.array([[b"a", b"b"], [b"c", b"d"]], object).T, [[b"a", b"c"], [b"b", b"d"]]),
        (np.array([b"a", b"b", b"c"])[::-2], [b"c", b"a"]),
        (np.array([[b"a", "b"]], object).view(np.matrix), [[b"a", b"b"]]),
        (np.empty((0,), object), []),
        (np.empty((2, 0), "S3"), [[], []]),
        (np.broadcast_to(np.array([b"a"], object), (2, 1)), [[b"a"], [b"a"]]),
    ],
    ids=[
        "bytes", "text", "mixed", "S", "U", "big-endian U", "StringDType", "0-d", "0-d U",
        "transposed", "reversed", "subclass", "empty", "empty with sizes", "broadcast",
    ],
)  # fmt: skip
def test_an_array_of_strings_is_a_tensor_of_strings(
    array: np.ndarray[Any, Any], stored: list[Any]
) -> None:
    for old in ("text", np.ones(3), torch.ones(2), np.array([b"old"] * 3, object)):
        FeedBlob("x", old)
        assert FeedBlob("x", array) is True
        fetched = FetchBlob("x")
        assert fetched.dtype == object
        assert fetched.shape == array.shape
        assert fetched.tolist() == stored
        assert all(type(item) is bytes for item in fetched.reshape(-1).tolist())
    blob = workspace.Workspace.current.blobs["x"]
    assert blob.is_tensor()
    assert blob.Get(caffe2.Tensor).IsType(c10.string)
    assert blob.Get(caffe2.Tensor).sizes() == array.shape


def test_a_fetched_array_of_strings_is_a_copy() -> None:
    array = np.array([b"a", b"b"], object)
    FeedBlob("x", array)
    array[0] = b"z"
    fetched = FetchBlob("x")
    assert fetched.tolist() == [b"a", b"b"]
    fetched[0] = None
    assert FetchBlob("x").tolist() == [b"a", b"b"]


@pytest.mark.parametrize(
    ("items", "word"),
    [
        (["a", 3], "element 1"),
        ([None], "NoneType"),
        ([bytearray(b"a")], "bytearray"),
        ([b"a", [b"b"]], "list"),
        (["a", "\ud800"], "surrogates"),
        ([b"a", "\ud800"], "surrogates"),
        (["a" * 1000, object], "type"),
    ],
)
def test_an_array_with_something_else_in_it_is_refused(items: list[Any], word: str) -> None:
    array = np.empty(len(items), object)
    array[:] = items
    for old in (np.array([b"old"] * len(items), object), np.arange(2), torch.arange(2), "old"):
        FeedBlob("x", old)
        before = FetchBlob("x")
        for name in ("x", "new"):
            with pytest.raises(c10.EnforceNotMet) as info:
                FeedBlob(name, array)
            refused(info.value, f"'{name}'", word)
            assert isinstance(info.value.__cause__, (TypeError, UnicodeEncodeError))
        after = FetchBlob("x")
        assert after == before if isinstance(before, bytes) else after.tolist() == before.tolist()
    assert workspace.Blobs() == ["x"]


@pytest.mark.parametrize("value", ["\ud800", Text("\udfff")])
def test_text_that_utf8_cannot_say_is_refused(value: str) -> None:
    FeedBlob("x", "old")
    with pytest.raises(c10.EnforceNotMet) as info:
        FeedBlob("x", value)
    refused(info.value, "utf-8", kind=ValueError)
    assert FetchBlob("x") == b"old"


def test_torch_cannot_have_a_tensor_of_strings() -> None:
    FeedBlob("x", np.array([b"a"], object))
    with pytest.raises(c10.EnforceNotMet) as info:
        FetchTorch("x")
    refused(info.value, "'x'", "string")
    assert info.value.__cause__ is not None


def test_a_shared_tensor_of_strings_is_not_written_by_a_feed() -> None:
    tensor = caffe2.Tensor([2], ["a", b"b"])
    FeedBlob("x", tensor)
    assert FetchBlob("x").tolist() == [b"a", b"b"]
    tensor.mutable_data(c10.string)[0] = b"new"
    assert FetchBlob("x").tolist() == [b"new", b"b"]
    FeedBlob("x", np.array([b"c", b"d"], object))  # what is shared is not written
    assert list(tensor.data(c10.string)) == [b"new", b"b"]


def test_the_own_tensor_of_strings_is_filled_in_place() -> None:
    FeedBlob("x", np.array([b"a", b"b"], object))
    tensor = workspace.Workspace.current.blobs["x"].Get(caffe2.Tensor)
    FeedBlob("x", np.array(["c", "d"]))
    assert list(tensor.data(c10.string)) == [b"c", b"d"]


def test_size_in_bytes_counts_the_strings() -> None:
    FeedBlob("x", np.array([b"Hello World!", b"abcd"]))
    FeedBlob("y", np.array([b"element1", b"element2"]))
    assert workspace.GetBlobSizeBytes("x") - workspace.GetBlobSizeBytes("y") == 0
    assert workspace.GetBlobSizeBytes("x") == 2 * c10.string.itemsize + 16
    FeedBlob("plain", "abc")
    assert workspace.GetBlobSizeBytes("plain") == 0


def test_very_many_strings_come_back() -> None:
    items = [b"%d" % index for index in range(100_000)]
    for array in (np.array(items), np.array(items, object)):
        FeedBlob("x", array)
        assert FetchBlob("x").tolist() == items
