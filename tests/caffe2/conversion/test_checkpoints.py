# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as streams of blobs: five formats there and back, damage, memory, and atomicity."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import save_checkpoint, workspace
from bridge.caffe2.conversion.checkpoints import kind_of_file, open_entries, write_entries
from bridge.caffe2.conversion.entries import Entry
from bridge.caffe2.files.minidb import MiniDBReader, MiniDBWriter
from tests.helpers.isolate import run_python

pytestmark = pytest.mark.usefixtures("fresh_workspace")

GOLDEN = Path(__file__).parents[2] / "golden"
CHECKPOINT = GOLDEN / "checkpoint.minidb"
CHUNKS = GOLDEN / "checkpoint_chunks.minidb"
KINDS = ("safetensors", "npz", "minidb", "lmdb")


def convert(source: Path, target: Path, kind: str) -> list[dict[str, Any]]:
    """Convert a file; return the descriptions of its blobs."""
    if kind == "lmdb" or source.is_dir():
        pytest.importorskip("lmdb")
    with open_entries(str(source), kind_of_file(str(source))) as opened:
        write_entries(str(target), kind, opened.entries)
        return [entry.to_dict() for entry in opened.entries]


def numpy_of(path: Path) -> dict[str, Any]:
    """Return the tensors of a file of any kind, read by it."""
    found = {}
    with open_entries(str(path), kind_of_file(str(path))) as opened:
        for entry in opened.entries:
            if entry.message is None:
                data = b"".join(bytes(chunk) for chunk in entry.chunks())
                found[entry.name] = np.frombuffer(data, entry.dtype).reshape(entry.sizes)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_each_format_gives_back_the_checkpoint_byte_for_byte(kind: str, tmp_path: Path) -> None:
    first = convert(CHECKPOINT, tmp_path / "there", kind)
    assert kind_of_file(str(tmp_path / "there")) == kind
    second = convert(tmp_path / "there", tmp_path / "back.minidb", "minidb")
    if kind == "lmdb":  # in the order of the keys
        key = lambda one: one["name"]  # noqa: E731
        assert sorted(first, key=key) == sorted(second, key=key)
    else:
        assert (tmp_path / "back.minidb").read_bytes() == CHECKPOINT.read_bytes()
    assert {one["kind"] for one in first} == {"tensor", "strings", "std::string", "int8 tensor"}


def test_chunks_are_read_in_any_order(tmp_path: Path) -> None:
    with MiniDBReader(str(CHUNKS)) as db:
        records = [(record.key, record.read()) for record in db.records()]
    with MiniDBWriter(str(tmp_path / "shuffled.minidb")) as out:
        for key, value in reversed(records):
            out.put(key, value)
    convert(tmp_path / "shuffled.minidb", tmp_path / "x.npz", "npz")
    found, wanted = numpy_of(tmp_path / "x.npz"), numpy_of(CHUNKS)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)


def test_numpy_and_safetensors_read_the_converted_files(tmp_path: Path) -> None:
    load_file = pytest.importorskip("safetensors.numpy").load_file
    arrays = {
        "f": np.arange(6, dtype=np.float32).reshape(2, 3),
        "d": np.array(2.5),
        "i": np.arange(-3, 3),
        "b": np.array([True, False, True]),
        "h": np.arange(3, dtype=np.float16),
        "u": np.arange(5, dtype=np.uint8),
        "empty": np.zeros((0, 4), np.float32),
    }
    for name, value in arrays.items():
        workspace.FeedBlob(name, value)
    save_checkpoint(str(tmp_path / "x.minidb"), list(arrays))
    convert(tmp_path / "x.minidb", tmp_path / "x.safetensors", "safetensors")
    convert(tmp_path / "x.minidb", tmp_path / "x.npz", "npz")
    with np.load(tmp_path / "x.npz") as npz:
        assert list(npz) == list(arrays)
        for found in (load_file(tmp_path / "x.safetensors"), npz):
            for name, value in arrays.items():
                assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape)
                np.testing.assert_array_equal(found[name], value)
    np.savez_compressed(tmp_path / "z.npz", **arrays, by_column=np.asfortranarray(np.eye(3, 2)))
    convert(tmp_path / "z.npz", tmp_path / "z.minidb", "minidb")
    np.testing.assert_array_equal(numpy_of(tmp_path / "z.minidb")["by_column"], np.eye(3, 2))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_weights_of_detectron_are_converted(protocol: int, tmp_path: Path) -> None:
    blobs = OrderedDict(
        conv_w=np.arange(600, dtype=np.float32).reshape(2, 300),
        by_column=np.asfortranarray(np.arange(600.0).reshape(2, 300)),
        big_endian=np.arange(3, dtype=">i4"),
        scalar=np.float32(2.5),
    )
    path = tmp_path / "R-50.pkl"
    path.write_bytes(pickle.dumps({"blobs": blobs, "cfg": "x" * 1000}, protocol=protocol))
    assert kind_of_file(str(path)) == "pickle"
    convert(path, tmp_path / "x.npz", "npz")
    with np.load(tmp_path / "x.npz") as found:
        assert list(found) == list(blobs)
        for name, value in blobs.items():
            np.testing.assert_array_equal(found[name], value)


def test_a_pickle_of_python_2_is_converted(tmp_path: Path) -> None:
    """Whose arrays are text, as Detectron's own files are."""
    data = np.arange(300, dtype=np.float32).tobytes()
    opcodes = (
        b"\x80\x02}U\x05blobs}U\x01wcnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        b"K\x00\x85U\x01b\x87R(K\x01K\x96K\x02\x86cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R"
        b"(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + len(data).to_bytes(4, "little")
        + data
        + b"tbss."
    )
    (tmp_path / "x.pkl").write_bytes(opcodes)
    found = numpy_of(tmp_path / "x.pkl")
    np.testing.assert_array_equal(found["w"], np.arange(300, dtype=np.float32).reshape(150, 2))


class Evil:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_no_code_of_a_pickle_runs(protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    blobs = {"blobs": {"a": np.zeros(3), "b": Evil(str(tmp_path / "evil"))}}
    path.write_bytes(pickle.dumps(blobs, protocol=protocol))
    with pytest.raises(EnforceNotMet, match=r"would import \w+\.mkdir"):
        open_entries(str(path), "pickle")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("extra", [b"", b"x" * 1000], ids=["in the pickle", "in the file"])
def test_a_pickle_with_more_bytes_than_elements_is_refused(extra: bytes, tmp_path: Path) -> None:
    """Which would be written over what follows."""
    shape, dtype = (2, 3), np.dtype("<f2")
    state = (1, shape, dtype, False, np.arange(6, dtype=np.float32).tobytes() + extra)

    class Longer:
        def __reduce__(self) -> Any:
            made = np.array(0, dtype).__reduce__()
            return made[0], made[1], state

    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps({"a": Longer(), "b": np.ones(3)}, protocol=2))
    with pytest.raises(EnforceNotMet, match=r"has \d+ bytes, not 12"):
        numpy_of(path)


@pytest.mark.parametrize("put", [b"r\xff\xff\xff\x7f", b"p2000000000\n"], ids=["binary", "text"])
def test_a_number_of_a_pickle_asks_for_no_memory(put: bytes, tmp_path: Path) -> None:
    """For as many objects, 16 GB, the unpickler would make room."""
    path = tmp_path / "x.pkl"
    path.write_bytes(b"\x80\x02}" + put + b".")
    with pytest.raises(EnforceNotMet, match="is not that of an object before"):
        open_entries(str(path), "pickle")


def safetensors(header: bytes, data: bytes = bytes(64)) -> bytes:
    return len(header).to_bytes(8, "little") + header + data


W = b'"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}'
DAMAGED_HEADERS = {
    "infinite": b'{"w": {"dtype": "F32", "shape": [Infinity], "data_offsets": [0, 8]}}',
    "deep": b'{"w": ' + b"[" * 200_000,
    "infinite zero point": b'{"__metadata__": {"caffe2.int8": "{\\"w\\": {\\"scale\\": 1, '
    b'\\"zero_point\\": Infinity}}"}, ' + W + b"}",
    "large zero point": b'{"__metadata__": {"caffe2.int8": "{\\"w\\": {\\"scale\\": 1, '
    b'\\"zero_point\\": 4294967296}}"}, ' + W.replace(b"F32", b"I32") + b"}",
    "quantized floats": b'{"__metadata__": {"caffe2.int8": "{\\"w\\": {\\"scale\\": 1, '
    b'\\"zero_point\\": 0}}"}, ' + W + b"}",
    # Tensor 2x1 of int32: [1, 2]
    "numbers in a message": b'{"__metadata__": {"caffe2": "{\\"n\\": \\"'
    + base64.b64encode(b"\n\x01n\x12\x06Tensor\x1a\x0a\x08\x02\x08\x01\x10\x02\x22\x02\x01\x02")
    + b'\\"}"}, '
    + W
    + b"}",
    "no base64": b'{"__metadata__": {"caffe2": "{\\"n\\": \\"CgF(uEgt=\\"}"}, ' + W + b"}",
    "deep metadata": b'{"__metadata__": {"caffe2": "' + b"[" * 200_000 + b'"}, ' + W + b"}",
}


@pytest.mark.parametrize("name", DAMAGED_HEADERS)
def test_wrong_headers_are_refused_as_damaged(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(safetensors(DAMAGED_HEADERS[name]))
    with pytest.raises(EnforceNotMet, match="damaged") as caught:
        open_entries(str(path), "safetensors")
    assert isinstance(caught.value, ValueError)


def test_a_damaged_compressed_member_is_refused(tmp_path: Path) -> None:
    """Where NumPy's head of it is, which is read first."""
    path = tmp_path / "x.npz"
    np.savez_compressed(path, w=np.arange(100))
    data = bytearray(path.read_bytes())
    begin = data.index(b"w.npy") + 25
    data[begin : begin + 8] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(EnforceNotMet, match="is damaged") as caught:
        open_entries(str(path), "npz")
    assert isinstance(caught.value, ValueError)


def test_a_member_that_begins_before_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, w=np.arange(3))
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\5\6") + 16  # where the directory begins
    data[at : at + 4] = (int.from_bytes(data[at : at + 4], "little") + 9).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(EnforceNotMet, match="is damaged"):
        open_entries(str(path), "npz")


@pytest.mark.parametrize("kind", ["npz", "safetensors", "minidb"])
@pytest.mark.parametrize("size", [4, 12])
def test_chunks_of_another_size_than_their_entry_leave_no_file(
    kind: str, size: int, tmp_path: Path
) -> None:
    entry = Entry("x", "float32", [2], 8, lambda: iter([bytes(size)]))
    target = tmp_path / "x"
    with pytest.raises(EnforceNotMet, match="8 bytes"):
        write_entries(str(target), kind, [entry])
    assert not target.exists()


def damaged(path: Path, kind: str, tmp_path: Path) -> list[Path]:
    """Return files with the first part of `path`, and with bytes replaced in its head."""
    data = path.read_bytes()
    found = []
    for i, broken in enumerate(
        [data[: len(data) // 2], data[:-1], data[:12] + b"\xff" * 20 + data[32:]]
    ):
        found.append(tmp_path / f"damaged{i}.{kind}")
        found[-1].write_bytes(broken)
    return found


@pytest.mark.parametrize("kind", ["safetensors", "npz", "minidb", "pickle"])
def test_damaged_files_leave_the_target_as_it_was(kind: str, tmp_path: Path) -> None:
    source = tmp_path / "x"
    if kind == "pickle":
        source.write_bytes(pickle.dumps({"w": np.arange(1000.0)}, protocol=2))
    else:
        convert(CHECKPOINT, source, kind)
    target = tmp_path / "target.npz"
    target.write_bytes(b"before")
    for path in damaged(source, kind, tmp_path):
        try:
            with open_entries(str(path), kind) as opened:
                write_entries(str(target), "npz", opened.entries)
        except (EnforceNotMet, OSError):
            assert target.read_bytes() == b"before"
            assert not list(tmp_path.glob(".*.tmp"))
        else:  # the bytes were those of values
            target.write_bytes(b"before")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_files_are_checked_by_their_checksums(
    save: Callable[..., None], tmp_path: Path
) -> None:
    save(tmp_path / "x.npz", w=np.arange(5_000_000, dtype=np.int16), v=np.ones(3))
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[1000] ^= 1
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(EnforceNotMet, match=r"x\.npz' is damaged.*'w(\.npy)?'"):
        convert(tmp_path / "x.npz", tmp_path / "y.minidb", "minidb")
    assert not (tmp_path / "y.minidb").exists()


def test_types_that_a_format_does_not_have_are_refused(tmp_path: Path) -> None:
    def entries(dtype: str) -> Sequence[Entry]:
        return [Entry("x", dtype, [1], 2, lambda: iter([b"\0\0"]))]

    for kind in ("npz", "minidb"):
        with pytest.raises(EnforceNotMet, match="no elements of bfloat16"):
            write_entries(str(tmp_path / "x"), kind, entries("bfloat16"))
    with pytest.raises(EnforceNotMet, match="no elements of quint8"):
        write_entries(str(tmp_path / "x"), "safetensors", entries("quint8"))
    assert not list(tmp_path.iterdir())
    np.savez(tmp_path / "x.npz", text=np.array(["a"]))
    with pytest.raises(EnforceNotMet, match="not numbers"):
        open_entries(str(tmp_path / "x.npz"), "npz")


def test_a_folder_without_a_database_is_not_replaced(tmp_path: Path) -> None:
    pytest.importorskip("lmdb")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine").write_text("kept")
    with pytest.raises(EnforceNotMet, match="is not replaced"):
        convert(CHECKPOINT, tmp_path / "x", "lmdb")
    assert (tmp_path / "x" / "mine").read_text() == "kept"
    convert(CHECKPOINT, tmp_path / "y.lmdb", "lmdb")
    convert(CHUNKS, tmp_path / "y.lmdb", "lmdb")  # replaces it
    assert len(list(tmp_path.iterdir())) == 2


def test_a_conversion_needs_the_memory_of_one_blob(tmp_path: Path) -> None:
    """A checkpoint of 128 MiB in blobs of 16 goes through where 48 MiB more can be mapped."""
    program = f"""
import os, resource
from pathlib import Path
import numpy as np
from bridge.caffe2 import save_checkpoint, workspace
from bridge.caffe2.conversion.checkpoints import open_entries, write_entries
os.chdir({str(tmp_path)!r})
names = [f"w{{i}}" for i in range(8)]
for name in names:
    workspace.FeedBlob(name, np.full(4 << 20, 1.5, np.float32))
save_checkpoint("small.minidb", names[:1])
save_checkpoint("large.minidb", names)
workspace.ResetWorkspace()

def convert(source, kind, target, target_kind):
    with open_entries(source, kind) as opened:
        write_entries(target, target_kind, opened.entries)

def all_of(name):
    for kind in ("npz", "safetensors"):
        convert(f"{{name}}.minidb", "minidb", f"{{name}}.{{kind}}", kind)
        convert(f"{{name}}.{{kind}}", kind, f"{{name}}.back", "minidb")

all_of("small")
mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + (48 << 20), -1))
all_of("large")
with open("large.back", "rb") as back, open("large.minidb", "rb") as first:
    assert all(back.read(1 << 20) == first.read(1 << 20) for _ in range(130))
print("through")
"""
    assert run_python(program).strip().endswith("through")


def test_damaged_metadata_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("caffe2.json", json.dumps({"caffe2.int8": '{"nothing": {}}'}))
    with pytest.raises(EnforceNotMet, match="metadata"):
        open_entries(str(tmp_path / "x.npz"), "npz")
