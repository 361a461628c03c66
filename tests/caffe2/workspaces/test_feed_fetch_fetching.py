# SPDX-License-Identifier: Apache-2.0
"""Fetching from blobs, and what cannot be fetched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10, caffe2
from bridge.caffe2 import workspace
from bridge.caffe2.workspace import (
    Blobs,
    CreateBlob,
    FeedBlob,
    FetchBlob,
    FetchBlobs,
    FetchInt8Blob,
    FetchTorch,
    GetBlobSizeBytes,
    ResetBlob,
    SwitchWorkspace,
    Workspace,
)
from tests.helpers.workspaces import BlobReference, refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


UNKNOWN = {
    "FetchBlob": FetchBlob,
    "FetchTorch": FetchTorch,
    "FetchBlobs": lambda name: FetchBlobs([name]),
    "FetchInt8Blob": FetchInt8Blob,
    "ResetBlob": ResetBlob,
    "GetBlobSizeBytes": GetBlobSizeBytes,
    "blobs": lambda name: workspace.blobs[name],
    "Workspace.fetch_blob": lambda name: Workspace.current.fetch_blob(name),
    "Workspace.blobs": lambda name: Workspace.current.blobs[name],
    "Workspace.current_blobs": lambda name: Workspace.current_blobs[name],
}


@pytest.mark.parametrize("call", UNKNOWN.values(), ids=UNKNOWN)
@pytest.mark.parametrize(
    "name", ["nope", b"nope", BlobReference("nope")], ids=lambda n: type(n).__name__
)
def test_an_unknown_name_is_refused_with_the_known_names_and_a_remedy(call: Any, name: Any) -> None:
    FeedBlob("known", "text")
    with pytest.raises(c10.EnforceNotMet) as info:
        call(name)
    refused(info.value, "'nope'", "'known'", "FeedBlob", "CreateBlob", kind=KeyError)
    assert Blobs() == ["known"]


def test_an_unknown_name_names_the_workspace_that_has_it() -> None:
    FeedBlob("x", "text")
    SwitchWorkspace("other", True)
    with pytest.raises(KeyError, match="'default': SwitchWorkspace"):
        FetchBlob("x")


def test_a_long_list_of_names_is_cut() -> None:
    for index in range(1000):
        CreateBlob(f"blob{index}")
    with pytest.raises(KeyError) as info:
        FetchBlob("nope")
    assert len(str(info.value)) < 500


class Thing:
    """A class that is an element type."""


c10.TypeMeta.Register(Thing)


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (None, ["nothing"]),
        (Thing(), ["Thing"]),
        (caffe2.Tensor([2, 3], "cpu"), ["[2, 3]", "not allocated"]),
        (caffe2.Tensor(), ["undefined"]),
        (caffe2.Tensor([1], "cpu"), ["no type"]),
    ],
    ids=["nothing", "object", "sized", "undefined", "untyped"],
)
def test_values_that_cannot_be_fetched_are_named(obj: Any, words: list[str]) -> None:
    CreateBlob("x")
    Workspace.current.blobs["x"].Reset(obj)
    for call in (FetchBlob, FetchTorch, lambda name: Workspace.current.fetch_blob(name)):
        with pytest.raises(c10.EnforceNotMet) as info:
            call("x")
        assert not isinstance(info.value, KeyError)
        refused(info.value, "Blob 'x' holds", *words)


def test_fetch_blobs_fetches_several() -> None:
    FeedBlob("a", "one")
    FeedBlob("b", np.arange(2))
    first, second = FetchBlobs(["a", BlobReference("b")])
    assert first == b"one"
    assert second.tolist() == [0, 1]
    assert FetchBlobs([]) == []
    assert FetchBlobs(name for name in "a") == [b"one"]
    with pytest.raises(c10.EnforceNotMet):
        FetchBlobs(None)  # type: ignore[arg-type]


def test_a_quantized_blob_is_fetched_as_int8_or_real_values() -> None:
    tensor = caffe2.Tensor([2], [13, 3], "uint8")
    CreateBlob("q")
    blob = Workspace.current.blobs["q"]
    blob.Reset(workspace.Int8TensorCPU(tensor, 0.5, 3))
    fetched = FetchInt8Blob("q")
    assert fetched._fields == ("data", "scale", "zero_point")
    assert fetched.data.tolist() == [13, 3]
    assert fetched.data.dtype == np.uint8
    assert (fetched.scale, fetched.zero_point) == (0.5, 3)
    fetched.data[0] = 0
    assert Workspace.current.fetch_int8_blob("q").data.tolist() == [13, 3]
    assert workspace.FetchInt8BlobRealVal("q").tolist() == [5, 0]
    assert workspace.FetchInt8BlobRealVal("q").dtype == np.float32
    assert not blob.is_tensor()
    assert GetBlobSizeBytes("q") == 0
    with pytest.raises(c10.EnforceNotMet) as info:
        FetchBlob("q")
    refused(info.value, "q", "FetchInt8Blob")
    with pytest.raises(c10.EnforceNotMet):
        FetchTorch("q")
    FeedBlob("f", np.zeros(2))
    with pytest.raises(c10.EnforceNotMet) as info:
        FetchInt8Blob("f")
    refused(info.value, "f", "float64", "FetchBlob")


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "bool", "int8", "uint16", "int64", "complex64"]
)
def test_size_in_bytes_counts_the_elements(dtype: str) -> None:
    FeedBlob("x", np.zeros((2, 3), dtype))
    assert GetBlobSizeBytes("x") == 6 * np.dtype(dtype).itemsize
    FeedBlob("x", torch.zeros(0))
    assert GetBlobSizeBytes("x") == 0
    ResetBlob("x")
    assert GetBlobSizeBytes("x") == 0
    CreateBlob("new")
    assert GetBlobSizeBytes("new") == 0
