# SPDX-License-Identifier: Apache-2.0
"""`Blob`: feeding and fetching it, and its C++-style side."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2
from bridge.caffe2.workspace import Blob, Int8TensorCPU, Workspace
from tests.helpers.ids import shown
from tests.helpers.workspaces import refused


class Thing:
    """A registered class."""

    def __init__(self) -> None:
        self.value = 1


class Part(Thing):
    """Not registered, but its base is."""


class Stranger:
    """Not registered."""


class Needy:
    """Registered, and not made without an argument."""

    def __init__(self, argument: int) -> None:
        self.argument = argument


THING = c10.TypeMeta.Register(Thing)
c10.TypeMeta.Register(Needy)


def blobs_of_every_kind() -> dict[str, Blob]:
    """A blob that holds each kind of thing."""
    blobs = {}
    for kind, obj in {
        "nothing": None,
        "tensor": caffe2.Tensor([2], [1, 2]),
        "string": b"text",
        "thing": Thing(),
    }.items():
        blobs[kind] = Blob()
        blobs[kind].Reset(obj)
    return blobs


KINDS = list(blobs_of_every_kind())


def test_an_empty_blob_has_no_type_and_refuses_to_be_read() -> None:
    blob = Blob()
    assert not blob.is_tensor()
    assert not any(blob.IsType(T) for T in (caffe2.Tensor, c10.tensor, bytes, c10.string, Thing))
    for call in (blob.fetch, blob.as_tensor, blob.to_torch, lambda: blob.Get(bytes)):
        with pytest.raises(c10.EnforceNotMet) as info:
            call()
        refused(info.value, "nothing")
    assert "nothing" in repr(blob)


def test_a_blob_gives_back_the_value_it_was_fed() -> None:
    blob = Blob()
    assert blob.feed(np.arange(3)) is True
    assert blob.fetch().tolist() == [0, 1, 2]
    assert blob.is_tensor()
    assert blob.feed("text") is True
    assert blob.fetch() == b"text"
    assert not blob.is_tensor()
    t = torch.zeros(2)
    assert blob.feed(value=t, device_option=None) is True
    assert blob.to_torch() is t
    assert blob.as_tensor().to_torch() is t
    assert blob.feed(at.ones(2), "cpu") is True
    assert blob.fetch().tolist() == [1, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "value",
    [None, {1: 2}, np.zeros(1, "M8[s]"), np.array([1], object), torch.ones(2, 2).t(), "\ud800"],
    ids=["None", "dict", "datetime", "objects", "strided", "surrogate"],
)
def test_a_feed_that_fails_changes_nothing(kind: str, value: Any) -> None:
    blob = blobs_of_every_kind()[kind]
    before = repr(blob), blob._object, blob._tensor
    with pytest.raises(c10.EnforceNotMet) as info:
        blob.feed(value)
    refused(info.value, "Blob.feed")
    assert info.value.__cause__ is not None
    assert (repr(blob), blob._object, blob._tensor) == before
    assert blob.feed("after") is True


def test_is_type_and_get_accept_the_type_of_the_value_only() -> None:
    blobs = blobs_of_every_kind()
    names: dict[str, list[Any]] = {
        "nothing": [],
        "tensor": [caffe2.Tensor, c10.tensor],
        "string": [bytes, str, c10.string],
        "thing": [Thing, THING],
    }
    for kind, blob in blobs.items():
        for named, Ts in names.items():
            for T in Ts:
                assert blob.IsType(T) is (kind == named)
                if kind == named:
                    assert blob.Get(T) is blob.Get(T)
                else:
                    with pytest.raises(c10.EnforceNotMet) as info:
                        blob.Get(T)
                    refused(info.value, repr(blob).partition(" holds ")[2][:-1])
    assert blobs["string"].Get(bytes) == b"text"
    assert blobs["thing"].Get(Thing).value == 1
    assert isinstance(blobs["tensor"].Get(c10.tensor), caffe2.Tensor)


@pytest.mark.parametrize("T", [Stranger, 3, "no such type", None])
def test_objects_that_are_not_types_are_refused(T: Any) -> None:
    blob = Blob()
    blob.feed("text")
    for call in (blob.IsType, blob.Get, blob.GetMutable):
        with pytest.raises(c10.EnforceNotMet):
            call(T)
    assert blob.fetch() == b"text"


def test_get_shares_the_tensor() -> None:
    blob = Blob()
    blob.feed(np.zeros(3, np.float32))
    tensor = blob.Get(caffe2.Tensor)
    tensor.mutable_data("float32")[0] = 5
    assert blob.fetch().tolist() == [5, 0, 0]
    tensor.Resize(1)
    assert blob.fetch().tolist() == [5]
    assert blob.GetMutable(caffe2.Tensor) is tensor


@pytest.mark.parametrize("kind", KINDS)
def test_get_mutable_makes_an_object_where_there_is_none(kind: str) -> None:
    blob = blobs_of_every_kind()[kind]
    held = blob._object
    thing = blob.GetMutable(Thing)
    assert isinstance(thing, Thing)
    assert (thing is held) is (kind == "thing")
    assert blob.GetMutable(Thing) is thing is blob.Get(Thing) is blob.GetMutable(THING)


def test_get_mutable_of_each_kind() -> None:
    blob = Blob()
    tensor = blob.GetMutable(caffe2.Tensor)
    assert isinstance(tensor, caffe2.Tensor)
    assert not tensor.defined()
    assert blob.is_tensor()
    caffe2.ReinitializeTensor(tensor, [2], "float32")
    tensor.mutable_data("float32")[:] = 3
    assert blob.fetch().tolist() == [3, 3]
    assert blob.GetMutable(bytes) == b""
    assert blob.fetch() == b""
    assert isinstance(blob.GetMutable(THING), Thing)
    assert isinstance(blob.GetMutable(Int8TensorCPU), Int8TensorCPU)


def test_get_mutable_that_fails_changes_nothing() -> None:
    blob = Blob()
    blob.feed("text")
    with pytest.raises(c10.EnforceNotMet) as info:
        blob.GetMutable(Needy)
    refused(info.value, "Needy", "Reset")
    assert isinstance(info.value.__cause__, TypeError)
    assert blob.fetch() == b"text"
    needy = Needy(3)
    blob.Reset(needy)
    assert blob.GetMutable(Needy) is needy


def test_reset_takes_an_object_of_any_kind() -> None:
    blob = Blob()
    thing = Thing()
    blob.Reset(thing)
    assert blob.Get(Thing) is thing
    blob.Reset("h\u00e9")
    assert blob.fetch() == "h\u00e9".encode()
    tensor = caffe2.Tensor([2], [1, 2])
    blob.Reset(tensor)
    assert blob.Get(caffe2.Tensor) is tensor
    ours = at.arange(3)
    blob.Reset(ours)
    assert blob.Get(caffe2.Tensor).raw_data() == ours.data_ptr()
    part = Part()
    blob.Reset(part)
    assert blob.Get(Thing) is part
    blob.Reset()
    assert not blob.IsType(Thing)
    assert not blob.is_tensor()


@pytest.mark.parametrize(
    "obj", [Stranger(), object(), [1], torch.ones(1), at.ones(2, 2).t()], ids=shown
)
def test_reset_refuses_objects_that_a_blob_cannot_hold(obj: Any) -> None:
    blob = Blob()
    blob.Reset(b"old")
    with pytest.raises(c10.EnforceNotMet):
        blob.Reset(obj)
    assert blob.fetch() == b"old"


@pytest.mark.parametrize("left", KINDS)
@pytest.mark.parametrize("right", KINDS)
def test_swap_exchanges_values_of_any_kinds(left: str, right: str) -> None:
    one, other = blobs_of_every_kind()[left], blobs_of_every_kind()[right]
    before = repr(one), one._tensor, one._object, repr(other), other._tensor, other._object
    assert one.swap(other) is None
    after = repr(other), other._tensor, other._object, repr(one), one._tensor, one._object
    assert after == before


def test_swap_takes_the_tensor_along() -> None:
    one, other = Blob(), Blob()
    one.feed(np.zeros(2))
    other.feed(torch.ones(2))
    mine, theirs = one.tensor(), other.tensor()
    one.swap(other)
    assert other.tensor() is mine
    assert one.tensor() is theirs
    mine.feed(np.full(2, 5.0))
    assert other.fetch().tolist() == [5, 5]
    one.swap(one)
    assert one.fetch().tolist() == [1, 1]
    for nonsense in (None, caffe2.Tensor(), b"text"):
        with pytest.raises(c10.EnforceNotMet):
            one.swap(nonsense)  # type: ignore[arg-type]


def test_a_tensor_given_to_reset_is_written_by_the_next_feed() -> None:
    blob = Blob()
    tensor = caffe2.Tensor([2], [0.0, 0.0])
    blob.Reset(tensor)
    blob.feed(np.array([1.0, 2.0], tensor.dtype().numpy))
    assert tensor.numpy().tolist() == [1, 2]


def test_memory_put_under_the_own_tensor_is_not_written() -> None:
    blob = Blob()
    blob.feed(np.zeros(3))
    outside = np.arange(3.0)
    blob.Get(caffe2.Tensor).ShareExternalPointer(outside)
    assert blob.fetch().tolist() == [0, 1, 2]
    blob.feed(np.full(3, 9.0))
    assert blob.fetch().tolist() == [9, 9, 9]
    assert outside.tolist() == [0, 1, 2]


def test_a_blob_outlives_its_workspace() -> None:
    ws = Workspace()
    ws.feed_blob("x", np.arange(3))
    blob, tensor = ws.blobs["x"], ws.blobs["x"].tensor()
    del ws
    tensor.data[1] = 9
    assert blob.fetch().tolist() == [0, 9, 2]
    assert blob.feed(np.arange(3)) is True
    assert tensor.fetch().tolist() == [0, 1, 2]


@pytest.mark.parametrize("inner", ["text", np.arange(3), torch.arange(4.0), None], ids=str)
@pytest.mark.parametrize(
    "outer", ["other text", np.arange(5), torch.arange(6.0), at.arange(7), None], ids=str
)
def test_a_deleter_of_the_old_value_may_change_the_blob(outer: Any, inner: Any) -> None:
    """The last to come is what the blob holds, and all of it."""
    blob = Blob()
    memory = np.zeros(4, np.float32)

    def put(value: Any) -> None:
        if value is None:
            blob.Reset()
        else:
            blob.feed(value)

    tensor = caffe2.Tensor([4], "cpu")
    tensor.ShareExternalPointer(memory.ctypes.data, "float32", 16, lambda address: put(inner))
    blob.feed(tensor)
    del tensor
    put(outer)
    expected = Blob()
    if inner is not None:
        expected.feed(inner)
    assert repr(blob) == repr(expected)
    if inner is not None:
        np.testing.assert_array_equal(blob.fetch(), expected.fetch())


COPIES = [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]


@pytest.mark.parametrize("copied", COPIES, ids=["copy", "deepcopy", "pickle"])
def test_a_blob_is_copied_with_its_contents(copied: Any) -> None:
    blob = Blob()
    blob.feed(np.arange(3.0))
    found = copied(blob)
    assert type(found) is Blob
    assert found.fetch().tolist() == [0, 1, 2]
    assert copied(Blob()).IsType(caffe2.Tensor) is False


@pytest.mark.parametrize("copied", COPIES[1:], ids=["deepcopy", "pickle"])
def test_a_workspace_without_nets_is_copied_with_its_blobs(copied: Any) -> None:
    table = Workspace()
    table.feed_blob("x", np.arange(3.0))
    found = copied(table)
    found.feed_blob("x", np.zeros(2))
    assert table.fetch_blob("x").tolist() == [0, 1, 2]
    assert found.fetch_blob("x").tolist() == [0, 0]
