# SPDX-License-Identifier: Apache-2.0
"""The operators Save, Load, Checkpoint and DBExists, held against what the real Caffe2 does."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2
from tests.caffe2.files.test_minidb import GOLDEN, records, write
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")

FILES = {
    entry["file"]: entry for entry in json.loads((GOLDEN / "manifest.json").read_text())["minidb"]
}
MINIDB = {"db_type": "minidb", "absolute_path": 1}


def run(op_type: str, inputs: list[str], outputs: list[str], **arguments: Any) -> None:
    operator = core.CreateOperator(op_type, inputs, outputs, **{**MINIDB, **arguments})
    assert workspace.RunOperatorOnce(operator)


def save(path: Path, *names: str, **arguments: Any) -> None:
    run("Save", list(names), [], db=str(path), **arguments)


def load(path: Path, *names: str, **arguments: Any) -> None:
    run("Load", [], list(names), **{"db": str(path), **arguments})


def load_all(path: Path, **arguments: Any) -> None:
    load(path, load_all=1, **arguments)


def keys(path: Path) -> list[bytes]:
    return [key for key, _ in records(path)]


def check_value(found: Any, entry: dict[str, Any]) -> None:
    if entry["kind"] == "bytes":
        assert found == base64.b64decode(entry["value_base64"])
    elif entry["kind"] == "int8":
        assert (found.scale, found.zero_point) == (entry["scale"], entry["zero_point"])
        check_value(found.data, {**entry, "kind": "tensor"})
    else:
        assert entry["kind"] == "tensor"
        assert list(found.shape) == entry["shape"]
        if entry["dtype"] == "string":
            wanted = [base64.b64decode(item) for item in entry["strings_base64"]]
            assert found.ravel().tolist() == wanted
        else:
            assert found.dtype.name == entry["dtype"]
            assert hashlib.sha256(found.tobytes()).hexdigest() == entry["sha256"]


def fetch(name: str, entry: dict[str, Any]) -> Any:
    if entry["kind"] == "int8":
        return workspace.FetchInt8Blob(name)
    return workspace.FetchBlob(name)


@pytest.mark.parametrize("file", sorted(FILES))
@pytest.mark.parametrize("everything", [True, False])
def test_recorded_file_is_read(file: str, everything: bool) -> None:
    blobs = FILES[file]["blobs"]
    if everything:
        load_all(GOLDEN / file)
    else:
        load(GOLDEN / file, *blobs)
    assert workspace.Blobs() == sorted(blobs)
    for name, entry in blobs.items():
        check_value(fetch(name, entry), entry)


def test_recorded_file_is_written_byte_for_byte(tmp_path: Path) -> None:
    file = "checkpoint.minidb"
    load_all(GOLDEN / file)
    save(tmp_path / "x", *(key.partition("#%")[0] for key in FILES[file]["keys"]))
    assert (tmp_path / "x").read_bytes() == (GOLDEN / file).read_bytes()


def test_recorded_chunks_are_written_byte_for_byte(tmp_path: Path) -> None:
    """Caffe2's threads give them in any order; here it is that of the elements."""
    file = "checkpoint_chunks.minidb"
    load_all(GOLDEN / file)
    save(
        tmp_path / "x",
        *dict.fromkeys(key.partition("#%")[0] for key in FILES[file]["keys"]),
        chunk_size=64,
    )
    assert sorted(records(tmp_path / "x")) == sorted(records(GOLDEN / file))
    chunks = [key for key in keys(tmp_path / "x") if key.startswith(b"conv/w")]
    assert chunks == [b"conv/w#%0", b"conv/w#%1", b"conv/w#%2"]


@pytest.mark.parametrize(
    ("chunk_size", "sizes"),
    [(None, [1_000_000, 1_000_000, 500_001]), (-1, [1_000_000, 1_000_000, 500_001])]
    + [(size, [2_500_001]) for size in (0, -2, 2**30)]
    + [(2_500_000, [2_500_000, 1])],
)
def test_chunks_have_the_size_of_the_argument(
    tmp_path: Path, chunk_size: int | None, sizes: list[int]
) -> None:
    values = (np.arange(2_500_001) % 251).astype(np.uint8) % 128
    workspace.FeedBlob("x", values)
    save(tmp_path / "x", "x", **({} if chunk_size is None else {"chunk_size": chunk_size}))
    found = []
    for _, value in records(tmp_path / "x"):
        segment = caffe2_pb2.BlobProto.FromString(value).tensor.segment
        found.append(segment.end - segment.begin)
    assert found == sizes
    workspace.ResetWorkspace()
    load_all(tmp_path / "x")
    assert np.array_equal(workspace.FetchBlob("x"), values)


def test_root_folder_is_where_files_are(tmp_path: Path) -> None:
    workspace.ResetWorkspace(str(tmp_path / "root"))
    workspace.FeedBlob("x", np.float32([1]))
    run("Save", ["x"], [], db="file", absolute_path=0)
    assert os.listdir(tmp_path / "root") == ["file"]
    run("Load", [], ["x"], db="file", absolute_path=0)
    with pytest.raises(RuntimeError):
        run("Load", [], ["x"], db=str(tmp_path / "root" / "file"), absolute_path=0)


def test_names_in_the_file_are_stripped_and_replaced(tmp_path: Path) -> None:
    for name in ("a", "pre/b", "x/pre/c"):
        workspace.FeedBlob(name, np.float32([1]))
    save(tmp_path / "x", "a", "pre/b", "x/pre/c", strip_prefix="pre/")
    assert keys(tmp_path / "x") == [b"a#%0", b"b#%0", b"c#%0"]
    save(tmp_path / "x", "a", "pre/b", blob_name_overrides=["one", "two"])
    assert keys(tmp_path / "x") == [b"one#%0", b"two#%0"]
    message = caffe2_pb2.BlobProto.FromString(records(tmp_path / "x")[1][1])
    assert (message.name, message.tensor.name) == ("two", "two")


def test_names_in_the_workspace_get_a_prefix_or_lose_one(tmp_path: Path) -> None:
    workspace.FeedBlob("m/a", np.float32([1]))
    workspace.FeedBlob("m/b", np.float32([2]))
    save(tmp_path / "x", "m/a", "m/b")
    everything: tuple[tuple[dict[str, Any], list[str]], ...] = (
        ({}, ["m/a", "m/b"]),
        ({"add_prefix": "n/"}, ["n/m/a", "n/m/b"]),
        ({"strip_prefix": "m/"}, ["a", "b"]),
        ({"strip_prefix": "m/", "add_prefix": "n/"}, ["n/a", "n/b"]),
    )
    for arguments, names in everything:
        workspace.ResetWorkspace()
        load_all(tmp_path / "x", **arguments)
        assert workspace.Blobs() == names
    chosen: tuple[tuple[dict[str, Any], list[str]], ...] = (
        ({"source_blob_names": ["m/a", "m/b"]}, ["p", "q"]),
        ({"source_blob_names": ["n/m/a", "n/m/b"], "add_prefix": "n/"}, ["p", "q"]),
        ({"strip_prefix": "m/"}, ["a", "b"]),
    )
    for arguments, names in chosen:
        workspace.ResetWorkspace()
        load(tmp_path / "x", *names, **arguments)
        assert [workspace.FetchBlob(name).tolist() for name in names] == [[1], [2]]


def test_load_reads_several_files(tmp_path: Path) -> None:
    workspace.FeedBlob("a", np.float32([1]))
    workspace.FeedBlob("b", np.float32([2]))
    save(tmp_path / "x", "a")
    save(tmp_path / "y", "b")
    save(tmp_path / "z", "a", "b")
    x, y, z = (str(tmp_path / name) for name in "xyz")
    workspace.ResetWorkspace()
    load(tmp_path / "nowhere", "b", "a", dbs=[x, y])
    assert workspace.FetchBlob("b").tolist() == [2]
    workspace.ResetWorkspace()
    with pytest.raises(RuntimeError, match="in another file"):
        load_all(tmp_path / "x", dbs=[x, z])
    with pytest.raises(RuntimeError, match="named twice"):
        load_all(tmp_path / "x", dbs=[x, x])
    assert workspace.Blobs() == []


def test_missing_blobs_are_refused_unless_incomplete_is_allowed(tmp_path: Path) -> None:
    workspace.FeedBlob("a", np.float32([1]))
    save(tmp_path / "x", "a")
    workspace.FeedBlob("a", np.float32([5]))
    workspace.FeedBlob("b", b"kept")
    with pytest.raises(RuntimeError) as caught:
        load(tmp_path / "x", "a", "b", "new")
    refused(caught.value, "'b', 'new'", "allow_incomplete")
    assert workspace.Blobs() == ["a", "b"]
    assert workspace.FetchBlob("a").tolist() == [5]
    load(tmp_path / "x", "a", "b", allow_incomplete=1)
    assert workspace.FetchBlob("a").tolist() == [1]
    assert workspace.FetchBlob("b") == b"kept"
    with pytest.raises(RuntimeError, match="has no 'c'"):
        load(tmp_path / "x", "c", load_all=1, allow_incomplete=1)


def test_loaded_values_are_new_ones(tmp_path: Path) -> None:
    workspace.FeedBlob("a", np.float32([1, 2]))
    save(tmp_path / "x", "a")
    old = torch.zeros(2)
    workspace.FeedBlob("a", old)
    load(tmp_path / "x", "a")
    assert old.tolist() == [0, 0]
    assert workspace.FetchTorch("a").tolist() == [1, 2]


@pytest.mark.parametrize(
    ("op_type", "arguments", "words"),
    [
        ("Save", {"db": ""}, "argument db is missing"),
        ("Save", {"db_type": ""}, "argument db_type is missing"),
        ("Save", {"db_type": "leveldb"}, "'leveldb'"),
        ("Save", {"blob_name_overrides": ["x"]}, "1 blob_name_overrides for 2"),
        ("Save", {"blob_name_overrides": ["x", "x"]}, "saved as 'x'"),
        ("Save", {"blob_name_overrides": ["x", "y"], "strip_prefix": "z"}, "not both"),
        ("Save", {"blob_name_overrides": ["x", "y#%0"]}, "another name"),
        ("Load", {"db": ""}, "argument db is missing"),
        ("Load", {"db_type": ""}, "argument db_type is missing"),
        ("Load", {"db_type": "leveldb"}, "'leveldb'"),
        ("Load", {"db": "/nowhere/file"}, "'/nowhere/file'"),
        ("Load", {"source_blob_names": ["x"]}, "1 source_blob_names for 2"),
        ("Load", {"source_blob_names": ["x", "x"]}, "loaded twice"),
        ("Load", {"source_blob_names": ["x", "y"], "strip_prefix": "z"}, "not both"),
        ("Load", {"source_blob_names": ["x", "y"], "load_all": 1}, "not both"),
        ("Checkpoint", {"every": 0}, "not 0"),
        ("Checkpoint", {"db": "%d_%d"}, "one place"),
    ],
)
def test_wrong_arguments_are_refused_and_change_nothing(
    tmp_path: Path, op_type: str, arguments: dict[str, Any], words: str
) -> None:
    names = ["a", "b"]
    for name in names:
        workspace.FeedBlob(name, np.int64([1]))
    inputs, outputs = ([], ["c", "d"]) if op_type == "Load" else (names, [])
    with pytest.raises(RuntimeError) as caught:
        run(op_type, inputs, outputs, **{"db": str(tmp_path / "x"), **arguments})
    refused(caught.value, words)
    assert workspace.Blobs() == names
    assert os.listdir(tmp_path) == []


def test_blob_that_cannot_be_saved_leaves_the_old_file(tmp_path: Path) -> None:
    workspace.FeedBlob("a", np.float32([1]))
    workspace.CreateBlob("nothing")
    save(tmp_path / "x", "a")
    before = (tmp_path / "x").read_bytes()
    with pytest.raises(RuntimeError) as caught:
        save(tmp_path / "x", "a", "nothing")
    refused(caught.value, "'nothing'")
    assert (tmp_path / "x").read_bytes() == before
    assert os.listdir(tmp_path) == ["x"]


def chunked(path: Path, n: int = 10, size: int = 5) -> list[tuple[bytes, bytes]]:
    workspace.FeedBlob("a", np.arange(n, dtype=np.float32))
    save(path, "a", chunk_size=size)
    workspace.ResetWorkspace()
    return records(path)


def test_chunks_are_read_in_any_order(tmp_path: Path) -> None:
    write(tmp_path / "x", *reversed(chunked(tmp_path / "x", 10, 3)))
    load_all(tmp_path / "x")
    assert workspace.FetchBlob("a").tolist() == list(range(10))


def test_chunks_that_do_not_make_a_tensor_are_refused(tmp_path: Path) -> None:
    first, second = chunked(tmp_path / "x")
    other = (b"a#%1", chunked(tmp_path / "x", 12, 5)[1][1])
    text = (b"a", b"\n\x01a\x12\x0bstd::string\x22\x01t")
    for pairs, words in (
        ([first], "incomplete"),
        ([first, first], "none that begins at element 5"),
        ([first, second, second], "beyond the 10"),
        ([first, other], "another shape or type"),
        ([first, text], "before it"),
        ([text, first], "before it"),
        ([text, text], "before it"),
    ):
        write(tmp_path / "x", *pairs)
        workspace.FeedBlob("a", b"kept")
        with pytest.raises(RuntimeError) as caught:
            load_all(tmp_path / "x")
        refused(caught.value, "'a'", words)
        assert workspace.FetchBlob("a") == b"kept"


def test_chunk_of_a_tensor_larger_than_the_file_is_not_allocated(tmp_path: Path) -> None:
    message = caffe2_pb2.BlobProto(name="a", type="Tensor")
    message.tensor.dims[:] = [2**30]
    message.tensor.data_type = 1
    message.tensor.float_data[:] = [1.0]
    message.tensor.segment.begin, message.tensor.segment.end = 0, 1
    write(tmp_path / "x", (b"a#%0", message.SerializeToString()))
    with pytest.raises(RuntimeError) as caught:
        load_all(tmp_path / "x")
    refused(caught.value, "1073741824 elements, more than the file has bytes", "byte 0")


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    (record,) = chunked(tmp_path / "x", 2)
    write(tmp_path / "x", (b"\xff#%0", record[1]), record)
    load(tmp_path / "x", "a")
    with pytest.raises(RuntimeError, match="not UTF-8"):
        load_all(tmp_path / "x")


def test_file_is_read_until_all_is_there(tmp_path: Path) -> None:
    chunked(tmp_path / "x")
    with open(tmp_path / "x", "ab") as file:
        file.write(struct.pack("<ii", 5, 5))
    load(tmp_path / "x", "a")
    workspace.ResetWorkspace()
    with pytest.raises(RuntimeError, match="damaged"):
        load_all(tmp_path / "x")
    assert workspace.Blobs() == []


def test_device_that_is_said_is_kept_only_if_asked_for(tmp_path: Path) -> None:
    message = caffe2_pb2.BlobProto(name="a", type="Tensor")
    message.tensor.dims[:] = [1]
    message.tensor.data_type = 1
    message.tensor.float_data[:] = [1.0]
    message.tensor.device_detail.device_type = 1
    message.tensor.device_detail.device_id = 99
    write(tmp_path / "x", (b"a#%0", message.SerializeToString()))
    load_all(tmp_path / "x")
    assert workspace.FetchTorch("a").device.type == "cpu"
    with pytest.raises(RuntimeError) as caught:
        load_all(tmp_path / "x", keep_device=1)
    refused(caught.value, "cuda")


def test_checkpoint_saves_every_so_many_iterations(tmp_path: Path) -> None:
    workspace.FeedBlob("x", np.float32([1]))
    for number in range(1, 7):
        workspace.FeedBlob("iter", np.int64([number]))
        run("Checkpoint", ["iter", "x"], [], db=str(tmp_path / "x_%03d"), every=3)
    assert sorted(os.listdir(tmp_path)) == ["x_003", "x_006"]
    assert keys(tmp_path / "x_006") == [b"iter#%0", b"x#%0"]


def test_db_exists_says_whether_there_is_a_file(tmp_path: Path) -> None:
    chunked(tmp_path / "x")
    for name, there in (("x", True), ("y", False)):
        run("DBExists", [], ["there"], db_name=str(tmp_path / name))
        found = workspace.FetchBlob("there")
        assert (found.shape, found.dtype, bool(found)) == ((), np.dtype(bool), there)
    with pytest.raises(RuntimeError, match="no databases of the type 'other'"):
        run("DBExists", [], ["there"], db_name=str(tmp_path / "x"), db_type="other")


def test_inferring_shapes_does_not_look_for_a_database(tmp_path: Path) -> None:
    chunked(tmp_path / "x")
    net = core.Net("look")
    net.DBExists([], "there", db_name=str(tmp_path / "x"), **MINIDB)
    assert workspace.InferShapesAndTypes([net]) == ({}, {})
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob("there")


def test_blobs_are_read_from_an_open_file(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    for name, value in (("a", 1.0), ("b", 2.0)):
        workspace.FeedBlob(name, np.float32([value]))
    run("Save", ["a", "b"], [], db=path, db_type="minidb")
    workspace.ResetWorkspace()
    run("CreateDB", [], ["reader"], db=path, db_type="minidb")
    for name, value in (("b", 2.0), ("a", 1.0), ("b", 2.0)):
        run("Load", ["reader"], [name])
        assert workspace.FetchBlob(name).tolist() == [value]
    workspace.ResetWorkspace()
    run("CreateDB", [], ["reader"], db=path, db_type="minidb")
    run("Load", ["reader"], [], load_all=1)
    assert workspace.Blobs() == ["a", "b", "reader"]
    with pytest.raises(RuntimeError) as caught:
        run("Load", ["a"], ["b"])
    refused(caught.value, "use CreateDB")
