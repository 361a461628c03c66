# SPDX-License-Identifier: Apache-2.0
"""Databases in the hands of a script: C.create_db, transactions, cursors."""

import gc
import os
import resource
from pathlib import Path

import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.files.databases import registered_dbs
from bridge.caffe2.files.handles import DB, Mode, create_db
from tests.helpers.isolate import run_python
from tests.helpers.workspaces import refused

UNCLOSED = """
import os, sys
from bridge.caffe2 import workspace
C = workspace.C
db = C.create_db("minidb", sys.argv[1], C.Mode.new)
transaction = db.new_transaction()
transaction.put("k1", b"v1")
transaction.put("k2", b"v2")
"""


def records(path: Path) -> list[tuple[bytes, bytes]]:
    cursor = create_db("minidb", str(path), Mode.read).new_cursor()
    found = []
    while cursor.valid():
        found.append((cursor.key(), cursor.value()))
        cursor.next()
    return found


def written(path: Path, mode: Mode, **values: str) -> None:
    db = create_db("minidb", str(path), mode)
    transaction = db.new_transaction()
    for key, value in values.items():
        transaction.put(key, value)
    transaction.commit()
    db.close()


def test_records_come_back_in_their_order(tmp_path: Path) -> None:
    written(tmp_path / "db", Mode.write, b="1", a="2")
    assert records(tmp_path / "db") == [(b"b", b"1"), (b"a", b"2")]


def test_write_adds_and_new_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "db"
    written(path, Mode.new, a="1")
    written(path, Mode.write, b="2")
    assert records(path) == [(b"a", b"1"), (b"b", b"2")]
    written(path, Mode.new, c="3")
    assert records(path) == [(b"c", b"3")]


def test_the_old_file_is_there_until_the_new_one_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "db"
    written(path, Mode.new, a="1")
    db = create_db("minidb", str(path), Mode.new)
    transaction = db.new_transaction()
    transaction.put(b"b", b"2")
    assert records(path) == [(b"a", b"1")]
    del transaction, db
    assert records(path) == [(b"b", b"2")]


# Recorded from Caffe2 of PyTorch 1.8.1: the file then has both records, the exception or not, and
# after os._exit none.
@pytest.mark.parametrize(
    ("end", "found"),
    [
        ("", [(b"k1", b"v1"), (b"k2", b"v2")]),
        ("raise SystemExit", [(b"k1", b"v1"), (b"k2", b"v2")]),
        ("os._exit(0)", [(b"old", b"value")]),
    ],
    ids=["exit", "exception", "killed"],
)
def test_a_database_that_is_never_closed_is_whole_or_the_old_one(
    tmp_path: Path, end: str, found: list[tuple[bytes, bytes]]
) -> None:
    path = tmp_path / "db"
    written(path, Mode.new, old="value")
    run_python(f"{UNCLOSED}\n{end}", str(path))
    assert records(path) == found


def test_a_cursor_goes_back_to_the_first_record(tmp_path: Path) -> None:
    written(tmp_path / "db", Mode.new, a="1", b="2")
    cursor = create_db("minidb", str(tmp_path / "db"), Mode.read).new_cursor()
    assert not cursor.supports_seek()
    cursor.next()
    assert cursor.key() == b"b"
    cursor.next()
    assert not cursor.valid()
    with pytest.raises(RuntimeError) as raised:
        cursor.value()
    refused(raised.value, "valid()")
    cursor.seek_to_first()
    assert cursor.key() == b"a"


def test_reading_and_writing_are_kept_apart(tmp_path: Path) -> None:
    written(tmp_path / "db", Mode.new, a="1")
    reading = create_db("minidb", str(tmp_path / "db"), Mode.read)
    with pytest.raises(RuntimeError) as raised:
        reading.new_transaction()
    refused(raised.value, "not open for writing")
    writing = create_db("minidb", str(tmp_path / "other"), Mode.new)
    with pytest.raises(RuntimeError) as raised:
        writing.new_cursor()
    refused(raised.value, "not open for reading")
    transaction = writing.new_transaction()
    writing.close()
    with pytest.raises(RuntimeError) as raised:
        transaction.put("a", "b")
    refused(raised.value, "not open for writing")


def test_a_damaged_file_is_not_written_over_by_its_readable_part(tmp_path: Path) -> None:
    path = tmp_path / "db"
    written(path, Mode.new, a="1", b="2")
    damaged = path.read_bytes()[:-1]
    path.write_bytes(damaged)
    with pytest.raises(ValueError) as raised:
        create_db("minidb", str(path), Mode.write)
    refused(raised.value, "damaged", kind=ValueError)
    del raised
    gc.collect()
    assert path.read_bytes() == damaged
    assert os.listdir(tmp_path) == ["db"]


def test_a_disk_that_was_full_once_leaves_the_old_file(tmp_path: Path) -> None:
    """Part of a record may have been written, whatever room there is when the file is closed."""
    path = tmp_path / "db"
    written(path, Mode.new, a="1")
    db = create_db("minidb", str(path), Mode.new)
    transaction = db.new_transaction()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))
    try:
        with pytest.raises(RuntimeError) as raised:
            transaction.put(b"b", bytes(1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    refused(raised.value, "cannot be written")
    with pytest.raises(RuntimeError) as raised:
        db.close()
    refused(raised.value, "cannot be written", "is unchanged")
    assert records(path) == [(b"a", b"1")]
    assert os.listdir(tmp_path) == ["db"]


def test_paths_are_of_any_kind(tmp_path: Path) -> None:
    path = tmp_path / "db"
    create_db("minidb", os.fsencode(path), Mode.new).close()
    assert path.read_bytes() == b""
    assert not create_db("minidb", path, Mode.read).new_cursor().valid()


def test_wrong_arguments_and_places_are_refused(tmp_path: Path) -> None:
    for arguments, kind in (
        (("nope", "x", Mode.read), KeyError),
        (("minidb", str(tmp_path / "absent"), Mode.read), RuntimeError),
        (("minidb", str(tmp_path / "no" / "folder"), Mode.new), RuntimeError),
        (("minidb", str(tmp_path / "x"), 1), TypeError),
        (("minidb", None, Mode.new), TypeError),
        (("minidb", 3, Mode.read), TypeError),
    ):
        with pytest.raises(kind) as raised:
            create_db(*arguments)
        refused(raised.value, kind=kind)
    transaction = create_db("minidb", str(tmp_path / "y"), Mode.new).new_transaction()
    with pytest.raises(TypeError) as raised:
        transaction.put(3, b"x")  # type: ignore[arg-type]
    refused(raised.value, "int", kind=TypeError)


def test_the_names_of_the_extension_module() -> None:
    assert workspace.C is core.C
    assert workspace.C.create_db is create_db
    assert workspace.C.DB is DB
    assert "minidb" in registered_dbs()


def test_records_are_appended_to_an_lmdb_database(tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    path = str(tmp_path / "db")
    for mode, records in (
        (Mode.new, {"a": "1", "b": "2"}),
        (Mode.write, {"a": "3", "c": "4"}),
    ):
        db = create_db("lmdb", path, mode)
        transaction = db.new_transaction()
        for key, value in records.items():
            transaction.put(key, value)
        reader = create_db("lmdb", path, Mode.read) if mode is Mode.write else None
        db.close()
        if reader is not None:
            assert reader.new_cursor().value() == b"1", "a reader keeps what it opened"
    cursor = create_db("lmdb", path, Mode.read).new_cursor()
    found = []
    while cursor.valid():
        found.append((cursor.key(), cursor.value()))
        cursor.next()
    assert found == [(b"a", b"3"), (b"b", b"2"), (b"c", b"4")]
    with lmdb.open(path), pytest.raises(RuntimeError, match="already open in this process"):
        create_db("lmdb", path, Mode.write)
