# SPDX-License-Identifier: Apache-2.0
"""Counters, indexes, maps, mutexes and cursors in messages and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import workspace
from bridge.caffe2.proto import caffe2_pb2
from tests.helpers.operators import run_operator

pytestmark = pytest.mark.usefixtures("fresh_workspace")

# As the Caffe2 of PyTorch 1.8.1 wrote them.
COUNTER = b"\n\x01c\x12!std::unique_ptr<Counter<int64_t>>\x1a\x0b\x08\x01\x10\n:\x01cR\x02\xac\x02"
INDEX_TYPE = b'\n\x01i\x12"std::unique_ptr<caffe2::IndexBase>'
LONG_INDEX = (
    INDEX_TYPE + b'\x1a\x12\x08\x02\x10\nB\x02\x08\x00R\x02\x05\x07Z\x04\x08\x00\x10\x02"\x0410 1'
)
INT_INDEX = (
    INDEX_TYPE + b'\x1a\x12\x08\x02\x10\x02"\x02\x05\x07B\x02\x08\x00Z\x04\x08\x00\x10\x02"\x0410 0'
)
STRING_INDEX = (
    INDEX_TYPE + b'\x1a\x15\x08\x02\x10\x042\x01a2\x02bcB\x02\x08\x00Z\x04\x08\x00\x10\x02"\x0410 0'
)
EMPTY_INDEX = INDEX_TYPE + b'\x1a\x0e\x08\x00\x10\nB\x02\x08\x00Z\x04\x08\x00\x10\x00"\x0410 0'
EMPTY_MAP = (
    b"\n\x01m\x12&(std::unordered_map<int32_t, int32_t>)"
    b'" \n\x0e\x08\x00\x10\x02B\x02\x08\x00Z\x04\x08\x00\x10\x00'
    b"\n\x0e\x08\x00\x10\x02B\x02\x08\x00Z\x04\x08\x00\x10\x00"
)
MAP = (
    b"\n\x01m\x12&(std::unordered_map<int64_t, int32_t>)"
    b'"(\n\x12\x08\x02\x10\nB\x02\x08\x00R\x02\x07\x05Z\x04\x08\x00\x10\x02'
    b'\n\x12\x08\x02\x10\x02"\x02\x07\x05B\x02\x08\x00Z\x04\x08\x00\x10\x02'
)
MUTEX = b'\n\x01u\x12\x1bstd::unique_ptr<std::mutex>"\x00'
CURSOR = b'\n\x01t\x12\x1bstd::unique_ptr<TreeCursor>"\x04x y '
READ_CURSOR = (
    b"\n\x01t\x12\x1bstd::unique_ptr<TreeCursor>"
    b'\x1a\x11\x08\x01\x10\nB\x02\x08\x00R\x01\x02Z\x04\x08\x00\x10\x01"\x04x y '
)
ALL = {
    "counter": COUNTER,
    "long index": LONG_INDEX,
    "int index": INT_INDEX,
    "string index": STRING_INDEX,
    "empty index": EMPTY_INDEX,
    "map": MAP,
    "empty map": EMPTY_MAP,
    "mutex": MUTEX,
    "cursor": CURSOR,
    "cursor that has read": READ_CURSOR,
}


def fetched(op_type: str, inputs: list[str]) -> Any:
    run_operator(op_type, inputs, ["result"])
    return workspace.FetchBlob("result").tolist()


@pytest.mark.parametrize("written", ALL.values(), ids=ALL)
def test_objects_are_written_with_the_bytes_they_were_read_from(written: bytes) -> None:
    workspace.DeserializeBlob("x", written)
    name = caffe2_pb2.BlobProto.FromString(written).name
    assert workspace.SerializeBlob("x").replace(b"\n\x01x", b"\n\x01" + name.encode(), 1).replace(
        b":\x01x", b":\x01" + name.encode()
    ) == (written)


def test_objects_that_were_read_go_on_working() -> None:
    workspace.DeserializeBlob("c", COUNTER)
    assert fetched("RetrieveCount", ["c"]) == 300
    workspace.DeserializeBlob("i", STRING_INDEX)
    workspace.FeedBlob("keys", np.array([b"bc", b"new"], object))
    assert fetched("IndexGet", ["i", "keys"]) == [2, 3]
    workspace.DeserializeBlob("i", LONG_INDEX)
    workspace.FeedBlob("keys", np.array([7, 8]))
    assert fetched("IndexGet", ["i", "keys"]) == [2, 0]
    workspace.DeserializeBlob("t", READ_CURSOR)
    assert fetched("GetCursorOffset", ["t"]) == [2]
    workspace.DeserializeBlob("m", MAP)
    run_operator("MapToKeyValue", ["m"], ["k", "v"])
    assert workspace.FetchBlob("k").tolist() == workspace.FetchBlob("v").tolist() == [7, 5]


def test_objects_are_saved_and_loaded(tmp_path: Path) -> None:
    run_operator("CreateCounter", [], ["c"], init_count=7)
    run_operator("CreateTreeCursor", [], ["t"], fields=["a", "b:lengths", "b:values"])
    place = {"db": str(tmp_path / "db"), "db_type": "minidb", "absolute_path": True}
    run_operator("Save", ["c", "t"], [], **place)
    workspace.ResetWorkspace()
    run_operator("Load", [], ["c", "t"], **place)
    assert fetched("RetrieveCount", ["c"]) == 7
    workspace.FeedBlob("a", np.zeros(2))
    workspace.FeedBlob("l", np.array([2, 1], np.int32))
    workspace.FeedBlob("v", np.array([5, 6, 7]))
    run_operator("ReadNextBatch", ["t", "a", "l", "v"], ["A", "L", "V"])
    assert workspace.FetchBlob("V").tolist() == [5, 6]


def changed(written: bytes, **fields: Any) -> bytes:
    message = caffe2_pb2.BlobProto.FromString(written)
    for name, value in fields.items():
        setattr(message, name, value)
    data: bytes = message.SerializeToString()
    return data


def without_tensor(written: bytes) -> bytes:
    message = caffe2_pb2.BlobProto.FromString(written)
    message.ClearField("tensor")
    data: bytes = message.SerializeToString()
    return data


def twice() -> bytes:
    message = caffe2_pb2.BlobProto.FromString(LONG_INDEX)
    message.tensor.int64_data[:] = [5, 5]
    data: bytes = message.SerializeToString()
    return data


@pytest.mark.parametrize(
    "bad",
    [
        without_tensor(COUNTER),
        without_tensor(LONG_INDEX),
        changed(LONG_INDEX, content=b"10"),
        changed(LONG_INDEX, content=b"1 0"),
        changed(LONG_INDEX, content=b"ten 0"),
        twice(),
        changed(MAP, content=b""),
        changed(MAP, content=b"\xff"),
        changed(MAP, type="(std::unordered_map<int32_t, int32_t>)"),
        changed(READ_CURSOR, content=b"x:y x:lengths "),
        changed(CURSOR, content=b"\xff "),
        changed(COUNTER, type="std::unique_ptr<Counter<int32_t>>"),
    ],
)
def test_messages_that_contradict_themselves_are_refused(bad: bytes) -> None:
    workspace.FeedBlob("x", np.array([1.0]))
    with pytest.raises(c10.EnforceNotMet):
        workspace.DeserializeBlob("x", bad)
    assert workspace.FetchBlob("x").tolist() == [1.0]


def test_objects_without_a_form_are_not_written() -> None:
    run_operator("CreateAtomicBool", [], ["b"])
    with pytest.raises(c10.EnforceNotMet, match="AtomicBool"):
        workspace.SerializeBlob("b")
