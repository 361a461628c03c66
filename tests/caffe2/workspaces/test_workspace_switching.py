# SPDX-License-Identifier: Apache-2.0
"""Workspaces beside each other, reset, root folders, and `Workspace` objects."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10, caffe2
from bridge.caffe2 import workspace
from bridge.caffe2.workspace import (
    Blobs,
    CurrentWorkspace,
    FeedBlob,
    FetchBlob,
    FetchTorch,
    ResetWorkspace,
    RootFolder,
    SwitchWorkspace,
    Workspace,
    Workspaces,
)
from tests.helpers.workspaces import BlobReference, refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_workspaces_keep_their_blobs_apart() -> None:
    FeedBlob("x", "default")
    assert SwitchWorkspace("one", True) is None
    assert CurrentWorkspace() == "one"
    assert Blobs() == []
    FeedBlob("x", "one")
    SwitchWorkspace("default")
    assert FetchBlob("x") == b"default"
    SwitchWorkspace(b"one", create_if_missing=True)
    assert FetchBlob("x") == b"one"
    assert {"default", "one"} <= set(Workspaces())
    assert Workspaces() == sorted(Workspaces())
    ResetWorkspace()
    assert Blobs() == []
    SwitchWorkspace("default")
    assert FetchBlob("x") == b"default"


@pytest.mark.parametrize("create", [[], [False]])
def test_an_unknown_workspace_is_refused_unless_it_is_to_be_made(create: list[bool]) -> None:
    with pytest.raises(c10.EnforceNotMet) as info:
        SwitchWorkspace("never made", *create)
    refused(info.value, "'never made'", "'default'")
    assert CurrentWorkspace() == "default"
    assert "never made" not in Workspaces()


@pytest.mark.parametrize("name", [3, None, "\ud800"])
def test_a_name_of_a_workspace_that_is_not_text_is_refused(name: Any) -> None:
    with pytest.raises(c10.EnforceNotMet):
        SwitchWorkspace(name, True)
    assert CurrentWorkspace() == "default"


def test_all_threads_have_the_same_current_workspace() -> None:
    seen: list[str] = []

    def switch() -> None:
        seen.append(CurrentWorkspace())
        SwitchWorkspace("theirs", True)
        FeedBlob("x", "fed elsewhere")

    SwitchWorkspace("mine", True)
    thread = threading.Thread(target=switch)
    thread.start()
    thread.join()
    assert seen == ["mine"]
    assert CurrentWorkspace() == "theirs"
    assert FetchBlob("x") == b"fed elsewhere"


def test_reset_gives_a_new_workspace_and_leaves_the_old_alone() -> None:
    t = torch.zeros(2)
    FeedBlob("x", t)
    old = Workspace.current
    blob = old.blobs["x"]
    assert ResetWorkspace() is True
    assert Blobs() == []
    assert Workspace.current is not old
    assert blob.to_torch() is t
    FeedBlob("x", "new")
    assert blob.to_torch() is t
    blob.feed(np.arange(2))
    assert blob.fetch().tolist() == [0, 1]
    assert FetchBlob("x") == b"new"
    assert old.blobs["x"] is blob


def test_a_root_folder_is_made_and_kept_through_a_reset(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "down"
    assert ResetWorkspace(str(folder)) is True
    assert RootFolder() == str(folder)
    assert folder.is_dir()
    assert ResetWorkspace() is True
    assert RootFolder() == str(folder)
    SwitchWorkspace("without a root folder", True)
    assert RootFolder() == "."
    SwitchWorkspace("default")
    assert RootFolder() == str(folder)
    assert ResetWorkspace(root_folder=tmp_path) is True
    assert RootFolder() == str(tmp_path)
    ResetWorkspace(os.fsencode(tmp_path))  # type: ignore[arg-type]
    assert RootFolder() == str(tmp_path)


def test_a_root_folder_that_cannot_be_made_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    FeedBlob("x", "kept")
    before = RootFolder()
    for folder in (str(tmp_path / "file" / "below"), "", 3):
        with pytest.raises(c10.EnforceNotMet) as info:
            ResetWorkspace(folder)  # type: ignore[arg-type]
        assert info.value.__cause__ is not None
    assert RootFolder() == before
    assert FetchBlob("x") == b"kept"


# Workspace objects


def test_a_workspace_object_has_blobs_of_its_own() -> None:
    ws = Workspace()
    assert ws.blobs == {}
    assert len(ws.blobs) == 0
    blob = ws.create_blob("a")
    assert isinstance(blob, workspace.Blob)
    assert ws.create_blob("a") is blob
    assert ws.blobs["a"] is blob
    assert ws.has_blob("a") is True
    assert ws.has_blob("b") is False
    assert ws.feed_blob("b", np.arange(2)) is True
    assert ws.feed_blob(name="c", value="text", device_option=None) is True
    assert ws.fetch_blob("b").tolist() == [0, 1]
    assert ws.fetch_blob("c") == b"text"
    assert ws.remove_blob("c") is None
    assert ws.remove_blob("never there") is None
    assert list(ws.blobs) == ["a", "b"]
    assert Blobs() == []
    assert Workspaces() == sorted(set(Workspaces()))
    with pytest.raises(c10.EnforceNotMet):
        ws.feed_blob("d", None)
    assert not ws.has_blob("d")


def test_the_blobs_of_a_workspace_are_a_mapping() -> None:
    ws = Workspace()
    blobs = ws.blobs
    assert isinstance(blobs, Mapping)
    ws.feed_blob("x", "text")
    assert "x" in blobs
    assert "y" not in blobs
    assert [] not in blobs
    assert blobs.get("y") is None
    assert list(blobs) == ["x"]
    assert dict(blobs) == {"x": ws.create_blob("x")} == blobs
    assert [blob.fetch() for blob in blobs.values()] == [b"text"]
    assert "'x'" in repr(blobs)
    assert blobs[BlobReference("x")] is blobs["x"]


def test_the_current_workspace_is_one_object() -> None:
    t = torch.ones(2)
    FeedBlob("x", t)
    ws = Workspace.current
    assert isinstance(ws, Workspace)
    assert Workspace.current is ws
    assert Workspace().current is ws
    assert ws.blobs["x"].to_torch() is t
    assert Workspace.current_blobs["x"].to_torch() is t
    ws.feed_blob("y", "text")
    assert FetchBlob("y") == b"text"
    SwitchWorkspace("other", True)
    assert Workspace.current is not ws
    assert "x" not in Workspace.current_blobs
    SwitchWorkspace("default")
    assert Workspace.current is ws
    with pytest.raises(AttributeError):
        Workspace.current = Workspace()  # type: ignore[misc]


def test_a_removed_blob_goes_on() -> None:
    ws = Workspace()
    ws.feed_blob("x", np.arange(3))
    blob = ws.blobs["x"]
    ws.remove_blob("x")
    del ws
    blob.tensor().data[0] = 7
    assert blob.fetch().tolist() == [7, 1, 2]
    assert blob.to_torch().tolist() == [7, 1, 2]


def test_a_deleter_may_use_the_workspace() -> None:
    calls: list[Any] = []

    def deleter(address: int) -> None:
        calls.append(address)
        SwitchWorkspace("default")
        FeedBlob("from the deleter", "text")

    keep = np.zeros(4, np.float32)
    memory = int(keep.ctypes.data)
    tensor = caffe2.Tensor([4], "cpu")
    tensor.ShareExternalPointer(memory, "float32", 16, deleter)
    FeedBlob("x", tensor)
    del tensor
    ResetWorkspace()
    assert calls == [memory]
    assert FetchBlob("from the deleter") == b"text"


def test_a_reset_of_a_workspace_without_a_name_leaves_the_named_one() -> None:
    FeedBlob("x", "default")
    unnamed = Workspace()
    unnamed.feed_blob("y", "unnamed")
    SwitchWorkspace(unnamed)
    ResetWorkspace()
    assert Blobs() == []
    assert list(unnamed.blobs) == ["y"]
    SwitchWorkspace("default")
    assert FetchBlob("x") == b"default"


def run_in_threads(work: Callable[[int], None], n: int) -> None:
    """Run `work` with a number of its own in each of `n` threads that change places often."""
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(n)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)


def test_one_blob_may_be_changed_in_every_way_by_many_threads() -> None:
    """What a thread finds may be anything that another put; nothing but EnforceNotMet is raised."""
    FeedBlob("numbers", np.arange(1000))
    FeedBlob("strings", np.array([b"a", b"bb"] * 500, object))
    messages = [workspace.SerializeBlob("numbers"), workspace.SerializeBlob("strings")]
    large = np.arange(20_000.0)
    blobs = Workspace.current.blobs
    ways: list[Callable[[], object]] = [
        lambda: FeedBlob("x", torch.ones(30)),
        lambda: FeedBlob("x", large),
        lambda: FeedBlob("x", np.array([b"a"] * 30, object)),
        lambda: FetchBlob("x"),
        lambda: FetchTorch("x"),
        lambda: blobs["x"].Get(caffe2.Tensor).numel(),
        lambda: blobs["x"].tensor().reshape([2000]),
        lambda: blobs["x"].tensor().init([1000], "int8"),
        lambda: workspace.SerializeBlob("x"),
        lambda: workspace.DeserializeBlob("x", messages[0]),
        lambda: workspace.DeserializeBlob("x", messages[1]),
        lambda: blobs["x"].Reset(),
        lambda: FeedBlob("x", "text"),
        lambda: repr(blobs),
    ]
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        choose = random.Random(seed).choice
        for _ in range(600):
            try:
                choose(ways)()
            except c10.EnforceNotMet:
                continue
            except BaseException as error:
                errors.append(error)
                raise

    run_in_threads(work, 4)
    assert errors == []


def test_memory_of_numbers_is_not_read_as_objects_while_it_changes() -> None:
    """A view is made of the type that the memory has, whatever another thread makes of it."""
    FeedBlob("x", np.ones(3))
    tensor = Workspace.current.blobs["x"].tensor
    wrong: list[object] = []

    def look() -> None:
        array = tensor().data
        if array.dtype == object and not isinstance(array.base, np.ndarray | None):
            wrong.append(array.base)

    ways: list[Callable[[], object]] = [
        look,
        lambda: FeedBlob("x", np.array(["a", "b", "c"])),
        lambda: tensor().init([9000], "float32"),
    ]

    def work(seed: int) -> None:
        choose = random.Random(seed).choice
        stop = time.monotonic() + 2
        while time.monotonic() < stop and not wrong:
            with contextlib.suppress(c10.EnforceNotMet):
                choose(ways)()

    run_in_threads(work, 6)
    assert wrong == []


def test_many_threads_feed_and_fetch_at_once() -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for round_ in range(200):
                FeedBlob(f"own {number}", np.full(8, round_))
                FeedBlob("common", torch.full((8,), round_))
                FetchTorch("common")
                FetchBlob("common")
                assert FetchBlob(f"own {number}").tolist() == [round_] * 8
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(Blobs()) == 5
