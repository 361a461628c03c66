# SPDX-License-Identifier: Apache-2.0
"""minidb files: what is read, what is written, and what is refused."""

from __future__ import annotations

import errno
import gc
import os
import random
import resource
import stat
import struct
import tracemalloc
import warnings
from pathlib import Path

import pytest

from bridge.caffe2 import load_checkpoint, workspace
from bridge.caffe2.files.minidb import MiniDBReader, MiniDBWriter
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")

GOLDEN = Path(__file__).parents[2] / "golden"
CHUNKS = GOLDEN / "checkpoint_chunks.minidb"


def records(path: Path) -> list[tuple[bytes, bytes]]:
    with MiniDBReader(str(path)) as db:
        return [(record.key, record.read()) for record in db.records()]


def write(path: Path, *pairs: tuple[bytes, bytes]) -> None:
    with MiniDBWriter(str(path)) as db:
        for key, value in pairs:
            db.put(key, value)


def error_of(path: Path) -> ValueError:
    with pytest.raises(ValueError) as caught:
        records(path)
    return caught.value


def test_bytes_are_lengths_key_and_value(tmp_path: Path) -> None:
    write(tmp_path / "x", (b"k", b"value"), (b"key", b"v"))
    data = b"\x01\0\0\0\x05\0\0\0kvalue\x03\0\0\0\x01\0\0\0keyv"
    assert (tmp_path / "x").read_bytes() == data
    assert records(tmp_path / "x") == [(b"k", b"value"), (b"key", b"v")]


@pytest.mark.parametrize("name", ["checkpoint.minidb", "checkpoint_chunks.minidb"])
def test_recorded_file_comes_out_as_it_went_in(name: str, tmp_path: Path) -> None:
    write(tmp_path / "again", *records(GOLDEN / name))
    assert (tmp_path / "again").read_bytes() == (GOLDEN / name).read_bytes()


def test_file_without_records_has_no_bytes(tmp_path: Path) -> None:
    write(tmp_path / "empty")
    assert (tmp_path / "empty").read_bytes() == b""
    assert records(tmp_path / "empty") == []


def test_values_are_read_when_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "x", (b"large", bytes(50_000_000)), (b"small", b"v"))
    tracemalloc.start()
    with MiniDBReader(str(tmp_path / "x")) as db:
        found = {record.key: record for record in db.records()}
        assert found[b"small"].read() == b"v"
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        assert len(found[b"large"].read()) == 50_000_000
    tracemalloc.stop()


def test_record_says_where_it_is(tmp_path: Path) -> None:
    write(tmp_path / "x", (b"k", b"value"), (b"key", b"v"))
    with MiniDBReader(str(tmp_path / "x")) as db:
        found = list(db.records())
        assert [record.end for record in found] == [14, 26]
        assert [record.where for record in found] == [
            f"file {str(tmp_path / 'x')!r}, byte {at}" for at in (0, 14)
        ]
        assert db.nbytes == 26


@pytest.mark.parametrize("cut", [1, 4, 7, 8, 10, 13])
def test_file_that_is_cut_short_names_the_byte(tmp_path: Path, cut: int) -> None:
    write(tmp_path / "x", (b"k", b"value"), (b"k", b"value"))
    data = (tmp_path / "x").read_bytes()
    (tmp_path / "x").write_bytes(data[: 14 + cut])
    refused(error_of(tmp_path / "x"), "byte 14", str(tmp_path / "x"), kind=ValueError)


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ((0, 1), "key of a record has 0 bytes"),
        ((-5, 1), "key of a record has -5 bytes"),
        ((1, 0), "value of a record has 0 bytes"),
        ((1, -(2**31)), "value of a record has -2147483648 bytes"),
        ((2**31 - 1, 1), "key of 2147483647 bytes and a value of 1, and only 3 follow"),
        ((1, 2**31 - 1), "key of 1 bytes and a value of 2147483647, and only 3 follow"),
        ((2**31 - 1, 2**31 - 1), "only 3 follow"),
    ],
)
def test_impossible_lengths_are_refused_without_taking_memory(
    tmp_path: Path, lengths: tuple[int, int], words: str
) -> None:
    (tmp_path / "x").write_bytes(struct.pack("<ii", *lengths) + b"abc")
    tracemalloc.start()
    refused(error_of(tmp_path / "x"), words, "at byte 0", kind=ValueError)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_path_without_a_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path / "nowhere", "No such file"),
        (tmp_path, "not a regular file"),
        (tmp_path / "pipe", "not a regular file"),
    ):
        with pytest.raises(RuntimeError) as caught:
            MiniDBReader(str(path))
        refused(caught.value, str(path), words)
    with pytest.raises(ValueError) as null:
        MiniDBReader("a\0b")
    refused(null.value, "null", kind=ValueError)


def test_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "x", (b"k", b"value" * 100_000))
    with MiniDBReader(str(tmp_path / "x")) as db:
        (record,) = db.records()
        os.truncate(tmp_path / "x", 100)
        with pytest.raises(ValueError) as caught:
            record.read()
    refused(caught.value, "truncated", kind=ValueError)


def test_empty_key_or_value_is_not_written(tmp_path: Path) -> None:
    write(tmp_path / "x", (b"old", b"old"))
    for pair, words in (
        ((b"", b"v"), "The key of a record in a minidb file has 1 to"),
        ((b"k", b""), "The value of a record in a minidb file has 1 to"),
    ):
        with pytest.raises(ValueError) as caught:
            write(tmp_path / "x", (b"new", b"new"), pair)
        refused(caught.value, words, kind=ValueError)
    assert records(tmp_path / "x") == [(b"old", b"old")]
    assert os.listdir(tmp_path) == ["x"]


def test_link_and_mode_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "x", (b"k", b"v"))
    (tmp_path / "x").chmod(0o640)
    (tmp_path / "link").symlink_to("x")
    write(tmp_path / "link", (b"new", b"new"))
    assert (tmp_path / "link").is_symlink()
    assert records(tmp_path / "x") == [(b"new", b"new")]
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_places_that_cannot_be_written_are_refused_and_left_as_they_were(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path / "no folder" / "x", "No such file"),
        (tmp_path, "not a regular file"),
        (tmp_path / "pipe", "not a regular file"),
    ):
        with pytest.raises(RuntimeError) as caught:
            MiniDBWriter(str(path))
        refused(caught.value, str(path), words, "is unchanged")
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_disk_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    write(tmp_path / "x", (b"old", b"old"))

    def fail(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        with pytest.raises(RuntimeError) as caught:
            write(tmp_path / "x", (b"new", b"new"))
    refused(caught.value, "No space left", "is unchanged")
    assert records(tmp_path / "x") == [(b"old", b"old")]
    assert os.listdir(tmp_path) == ["x"]


def test_mutations_load_or_are_refused(tmp_path: Path) -> None:
    """2,000 damaged files: each is refused with nothing changed, or all that it holds is there."""
    original = CHUNKS.read_bytes()
    generator = random.Random(20)
    path = tmp_path / "damaged"
    outcomes = {"refused": 0, "loaded": 0}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(2000):
        data = bytearray(original)
        for _ in range(generator.randint(1, 4)):
            at = generator.randrange(len(data))
            kind = generator.randrange(5)
            if kind == 0:
                data[at] ^= 1 << generator.randrange(8)
            elif kind == 1:
                data[at] = generator.choice((0, 1, 0x7F, 0x80, 0xFF))
            elif kind == 2:
                del data[at : at + generator.randint(1, 80)]
            elif kind == 3:
                data[at:at] = data[at : at + generator.randint(1, 80)]
            else:
                data[at : at + 4] = struct.pack("<i", generator.choice((-1, 0, 2**31 - 1, 65536)))
        path.unlink(missing_ok=True)  # some disks take long to write over a file
        path.write_bytes(data)
        try:
            names = load_checkpoint(str(path))
        except RuntimeError as error:
            refused(error)
            assert workspace.Blobs() == []
            outcomes["refused"] += 1
        else:
            assert sorted(set(names)) == sorted(workspace.Blobs())
            for name in names:
                workspace.Workspace.current.blobs[name].fetch()
            outcomes["loaded"] += 1
            workspace.ResetWorkspace()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000, f"{grown} KiB for files of 10"
    assert min(outcomes.values()) > 100, outcomes


def test_a_reader_that_is_not_closed_closes_itself(tmp_path: Path) -> None:
    """Also in a cycle, whose objects Python finalises in any order."""
    with MiniDBWriter(str(tmp_path / "x")) as db:
        db.put(b"key", b"value")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(20):
            cycle: list[object] = [MiniDBReader(str(tmp_path / "x"))]
            cycle.append(cycle)
            del cycle
        gc.collect()
    assert [one for one in said if issubclass(one.category, ResourceWarning)] == []
