# SPDX-License-Identifier: Apache-2.0
"""Save and Load with db_type "lmdb", held against the package lmdb itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import load_checkpoint, save_checkpoint, workspace
from bridge.caffe2.files.lmdb import LMDBReader, LMDBWriter
from tests.caffe2.files.test_minidb import GOLDEN, records
from tests.caffe2.operators.control.test_files import load, run
from tests.helpers.workspaces import refused

lmdb = pytest.importorskip("lmdb")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_records_have_the_keys_and_values_of_minidb_in_order(tmp_path: Path) -> None:
    path = GOLDEN / "checkpoint_chunks.minidb"
    names = load_checkpoint(str(path))
    run("Save", names, [], db=str(tmp_path / "x"), db_type="lmdb", chunk_size=64)
    with lmdb.open(str(tmp_path / "x"), readonly=True) as env, env.begin() as transaction:
        assert list(transaction.cursor()) == sorted(records(path))
    assert os.listdir(tmp_path) == ["x"]
    assert "data.mdb" in os.listdir(tmp_path / "x")


def test_a_saved_checkpoint_is_loaded(tmp_path: Path) -> None:
    names = load_checkpoint(str(GOLDEN / "checkpoint.minidb"))
    before = {name: workspace.SerializeBlob(name) for name in names}
    save_checkpoint(str(tmp_path / "x"), names, "LMDB")
    workspace.ResetWorkspace()
    seen: list[tuple[int, int]] = []
    found = load_checkpoint(str(tmp_path / "x"), "lmdb", lambda *now: seen.append(now))
    assert sorted(found) == sorted(names)
    assert {name: workspace.SerializeBlob(name) for name in names} == before
    assert seen and all(0 < done <= total for done, total in seen)


def test_file_without_a_folder_is_read_with_several_chunks(tmp_path: Path) -> None:
    """Caffe2 writes a folder; a database that is one file is read as well."""
    workspace.FeedBlob("x", np.arange(1000, dtype=np.float32))
    save_checkpoint(str(tmp_path / "x"), ["x"], "lmdb", chunk_size=64)
    (tmp_path / "x" / "data.mdb").rename(tmp_path / "file")
    workspace.ResetWorkspace()
    load(tmp_path / "file", "x", db_type="lmdb")
    assert workspace.FetchBlob("x").tolist() == list(range(1000))


def test_an_existing_database_is_not_written_over(tmp_path: Path) -> None:
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


def test_a_path_without_a_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"junk" * 5000)
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "junk"):
        with pytest.raises(RuntimeError) as caught:
            load_checkpoint(str(path), "lmdb")
        refused(caught.value, str(path), "cannot be read")
    assert (tmp_path / "junk").read_bytes() == b"junk" * 5000


def test_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.FeedBlob("x", np.float32([1]))
    save_checkpoint(str(tmp_path / "x"), ["x"], "lmdb")
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(RuntimeError) as caught:
        save_checkpoint(str(tmp_path / "y"), ["x"], "lmdb")
    refused(caught.value, "pip install lmdb")
    workspace.ResetWorkspace()
    assert load_checkpoint(str(tmp_path / "x"), "lmdb") == ["x"], "reading needs no package"


def written(path: Path, items: dict[bytes, bytes]) -> None:
    with lmdb.open(str(path), map_size=2**30) as env, env.begin(write=True) as transaction:
        for key, value in items.items():
            transaction.put(key, value)


def read(path: Path) -> dict[bytes, bytes]:
    with LMDBReader(str(path)) as db:
        return {record.key: record.read() for record in db.records()}


def test_databases_of_every_size_are_read_as_the_package_wrote_them(tmp_path: Path) -> None:
    """Records are those of the package: none, in one page, and in thousands; after changes, too."""
    random = np.random.RandomState(0)
    items: dict[bytes, bytes] = {}
    for count in (0, 1, 50, 20000):
        for _ in range(count):
            key = random.bytes(random.randint(1, 60))
            items[key] = random.bytes(
                random.choice([0, 9, 300, 2000, 5000], p=[0.1, 0.6, 0.2, 0.05, 0.05])
            )
        written(tmp_path / "db", items)
        found = read(tmp_path / "db")
        assert found == items
        assert list(found) == sorted(items)
    with lmdb.open(str(tmp_path / "db"), map_size=2**30) as env:
        for key in sorted(items)[::3]:
            with env.begin(write=True) as transaction:
                transaction.delete(key)
            del items[key]
            if len(items) < 19990:
                break
    assert read(tmp_path / "db") == items


def test_several_readers_read_one_database_beside_the_script(tmp_path: Path) -> None:
    """The package opens a database once in a process; Caffe2 as often as it is asked to."""
    written(tmp_path / "db", {b"a": b"1", b"b": b"2"})
    with lmdb.open(str(tmp_path / "db")) as env:
        readers = [LMDBReader(str(tmp_path / "db")) for _ in range(3)]
        for reader in readers:
            assert [record.key for record in reader.records()] == [b"a", b"b"]
        with env.begin(write=True) as transaction:
            transaction.put(b"c", b"3")
        assert [record.key for record in readers[0].records()] == [b"a", b"b"]
        assert list(read(tmp_path / "db")) == [b"a", b"b", b"c"]


def test_databases_with_names_inside_are_refused(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path / "x"), max_dbs=1) as env:
        inner = env.open_db(b"inner")
        with env.begin(write=True, db=inner) as transaction:
            transaction.put(b"a", b"1")
    with pytest.raises(ValueError, match="key b'inner' has no value"):
        read(tmp_path / "x")


def test_damaged_files_are_refused_and_never_crash(tmp_path: Path) -> None:
    random = np.random.RandomState(1)
    items = {b"%04d" % i: random.bytes(random.randint(3000)) for i in range(200)}
    written(tmp_path / "db", items)
    whole = (tmp_path / "db" / "data.mdb").read_bytes()
    refusals = 0
    for _ in range(400):
        damaged = bytearray(
            whole[: random.randint(1, len(whole))] if random.rand() < 0.2 else whole
        )
        for _ in range(random.randint(1, 20)):
            # The first pages, and the heads of others.
            page = random.choice([0, 1, random.randint(len(whole) // 4096)])
            damaged[(page * 4096 + random.randint(160)) % len(damaged)] = random.choice(
                [0, 1, 2, 255]
            )
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            read(tmp_path / "damaged")
        except c10.EnforceNotMet:
            refusals += 1
    assert refusals > 100
