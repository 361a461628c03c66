# SPDX-License-Identifier: Apache-2.0
"""The names in a workspace: which there are, create and reset, `blobs` as a dict."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10
from bridge.caffe2 import workspace
from bridge.caffe2.workspace import (
    Blobs,
    CreateBlob,
    FeedBlob,
    FetchBlob,
    FetchTorch,
    HasBlob,
    ResetBlob,
    Workspace,
)
from tests.helpers.workspaces import BlobReference

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_names_of_every_kind() -> None:
    for name in (
        "",
        "plain",
        "with\0nul",
        "h\u00e9",
        np.str_("numpy"),
        BlobReference("ref"),
        b"bytes",
    ):
        assert FeedBlob(name, np.ones(1)) is True
        assert FetchBlob(name).tolist() == [1]
        assert FetchTorch(name).tolist() == [1]
        assert workspace.HasBlob(name)
        FeedBlob(name, torch.zeros(1))
        assert FetchBlob(name).tolist() == [0]
    assert workspace.Blobs() == ["", "bytes", "h\u00e9", "numpy", "plain", "ref", "with\0nul"]
    assert all(type(name) is str for name in workspace.Blobs())


@pytest.mark.parametrize("name", [3, None, [], 1.5, object, "\ud800", b"\xff"], ids=repr)
def test_a_name_that_is_not_text_is_refused(name: Any) -> None:
    for call in (
        lambda: FeedBlob(name, np.ones(1)),
        lambda: FeedBlob(name, None),
        lambda: FetchBlob(name),
        lambda: FetchTorch(name),
        lambda: workspace.HasBlob(name),
        lambda: workspace.CreateBlob(name),
        lambda: workspace.ResetBlob(name),
        lambda: workspace.GetBlobSizeBytes(name),
        lambda: workspace.FetchInt8Blob(name),
    ):
        with pytest.raises(c10.EnforceNotMet) as info:
            call()
        assert isinstance(info.value, (TypeError, ValueError))
    assert workspace.Blobs() == []


def test_create_keeps_a_blob_and_reset_empties_it() -> None:
    assert CreateBlob("x") is True
    blob = Workspace.current.blobs["x"]
    FeedBlob("x", "text")
    assert CreateBlob("x") is True
    assert Workspace.current.blobs["x"] is blob
    assert FetchBlob("x") == b"text"
    assert ResetBlob("x") is None
    assert HasBlob("x")
    assert not blob.is_tensor()
    with pytest.raises(c10.EnforceNotMet, match="nothing"):
        FetchBlob("x")


def test_blobs_are_listed_in_order() -> None:
    for name in ("b", "\u00e9", "a", "", "B"):
        CreateBlob(name)
    assert Blobs() == ["", "B", "a", "b", "\u00e9"]
    assert list(workspace.blobs) == list(Workspace.current.blobs) == Blobs()
    assert HasBlob("a") is True
    assert HasBlob("c") is False


def test_blobs_are_like_a_dict_of_values() -> None:
    blobs = workspace.blobs
    assert isinstance(blobs, MutableMapping)
    assert len(blobs) == 0
    blobs["x"] = np.arange(3)
    blobs["s"] = "text"
    assert blobs["x"].tolist() == [0, 1, 2]
    assert len(blobs) == 2
    assert "x" in blobs
    assert b"x" in blobs
    assert "y" not in blobs
    assert list(blobs.keys()) == ["s", "x"]
    assert dict(blobs)["s"] == b"text"
    assert blobs.get("y") is None
    assert blobs.pop("s") == b"text"
    del blobs["x"]
    assert Blobs() == []
    for call in (lambda: blobs["x"], lambda: blobs.pop("x"), lambda: blobs.__delitem__("x")):
        with pytest.raises(KeyError):
            call()
    with pytest.raises(c10.EnforceNotMet):
        blobs["x"] = None
    assert len(blobs) == 0
    blobs.update(x="1", y="2")
    assert "'x', 'y'" in repr(blobs)
    CreateBlob("holds nothing")
    blobs.clear()
    assert Blobs() == []
