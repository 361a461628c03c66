# SPDX-License-Identifier: Apache-2.0
"""Save and Load with db_type "lmdb", held against the package lmdb itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from bridge.caffe2 import load_checkpoint, save_checkpoint, workspace
from bridge.caffe2.files.lmdb import LMDBWriter
from tests.caffe2.files.test_minidb import GOLDEN, records
from tests.caffe2.operators.control.test_files import load, run
from tests.helpers.workspaces import refused

lmdb = pytest.importorskip("lmdb")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_records_are_those_of_minidb_by_their_keys(tmp_path: Path) -> None:
    path = GOLDEN / "checkpoint_chunks.minidb"
    names = load_checkpoint(str(path))
    run("Save", names, [], db=str(tmp_path / "x"), db_type="lmdb", chunk_size=64)
    with lmdb.open(str(tmp_path / "x"), readonly=True) as env, env.begin() as transaction:
        assert list(transaction.cursor()) == sorted(records(path))
    assert os.listdir(tmp_path) == ["x"]
    assert "data.mdb" in os.listdir(tmp_path / "x")


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    names = load_checkpoint(str(GOLDEN / "checkpoint.minidb"))
    before = {name: workspace.SerializeBlob(name) for name in names}
    save_checkpoint(str(tmp_path / "x"), names, "LMDB")
    workspace.ResetWorkspace()
    seen: list[tuple[int, int]] = []
    found = load_checkpoint(str(tmp_path / "x"), "lmdb", lambda *now: seen.append(now))
    assert sorted(found) == sorted(names)
    assert {name: workspace.SerializeBlob(name) for name in names} == before
    assert seen and all(0 < done <= total for done, total in seen)


def test_file_without_a_folder_and_several_chunks(tmp_path: Path) -> None:
    """Caffe2 writes a folder; a database that is one file is read as well."""
    workspace.FeedBlob("x", np.arange(1000, dtype=np.float32))
    save_checkpoint(str(tmp_path / "x"), ["x"], "lmdb", chunk_size=64)
    (tmp_path / "x" / "data.mdb").rename(tmp_path / "file")
    workspace.ResetWorkspace()
    load(tmp_path / "file", "x", db_type="lmdb")
    assert workspace.FetchBlob("x").tolist() == list(range(1000))


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    workspace.FeedBlob("x", np.float32([1]))
    save_checkpoint(str(tmp_path / "x"), ["x"], "lmdb")
    with pytest.raises(ValueError) as caught:
        save_checkpoint(str(tmp_path / "x"), ["x"], "lmdb")
    refused(caught.value, "exists already", kind=ValueError)
    assert os.listdir(tmp_path) == ["x"]


def test_failures_leave_nothing_behind(tmp_path: Path) -> None:
    workspace.FeedBlob("x", np.float32([1]))
    workspace.CreateBlob("nothing")
    with pytest.raises(RuntimeError, match="'nothing'"):
        save_checkpoint(str(tmp_path / "x"), ["x", "nothing"], "lmdb")
    with pytest.raises(RuntimeError) as caught, LMDBWriter(str(tmp_path / "x")) as db:
        db.put(b"k" * 600, b"v")
    refused(caught.value, str(tmp_path / "x"), "cannot be written")
    with pytest.raises(RuntimeError, match="No such file"):
        save_checkpoint(str(tmp_path / "no folder" / "x"), ["x"], "lmdb")
    assert os.listdir(tmp_path) == []


def test_what_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"junk" * 5000)
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "junk"):
        with pytest.raises(RuntimeError) as caught:
            load_checkpoint(str(path), "lmdb")
        refused(caught.value, str(path), "cannot be read")
    assert (tmp_path / "junk").read_bytes() == b"junk" * 5000


def test_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", None)
    workspace.FeedBlob("x", np.float32([1]))
    with pytest.raises(RuntimeError) as caught:
        save_checkpoint(str(tmp_path / "x"), ["x"], "lmdb")
    refused(caught.value, "pip install lmdb")
    with pytest.raises(RuntimeError) as caught:
        load_checkpoint(str(tmp_path / "x"), "lmdb")
    refused(caught.value, "pip install lmdb")
