# SPDX-License-Identifier: Apache-2.0
"""Tensors from databases and from queues."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace
from bridge.caffe2.files.databases import open_writer
from bridge.caffe2.operators.datasets.db_readers import FileReader
from bridge.caffe2.proto import caffe2_pb2
from tests.helpers.operators import run_operator

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def record(i: int) -> bytes:
    """A picture of (2, 3), a label and a name."""
    message = caffe2_pb2.TensorProtos()
    picture, label, name = (message.protos.add() for _ in range(3))
    picture.dims.extend([2, 3])
    picture.data_type = core.DataType.FLOAT
    picture.float_data.extend([i] * 6)
    label.data_type = core.DataType.INT32
    label.int32_data.append(i)
    name.data_type = core.DataType.STRING
    name.string_data.append(b"name %d" % i)
    data: bytes = message.SerializeToString()
    return data


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = str(tmp_path / "db")
    with open_writer("minidb", path) as db:
        for i in range(5):
            db.put(b"%d" % i, record(i))
    return path


def labels(**args: Any) -> list[Any]:
    run_operator("TensorProtosDBInput", ["reader"], ["picture", "label", "name"], **args)
    found: list[Any] = workspace.FetchBlob("label").tolist()
    return found


def test_batches_begin_again_at_the_end(database: str) -> None:
    run_operator("CreateDB", [], ["reader"], db=database, db_type="minidb")
    assert labels(batch_size=3) == [0, 1, 2]
    assert labels(batch_size=3) == [3, 4, 0]
    picture = workspace.FetchBlob("picture")
    assert picture.shape == (3, 2, 3)
    assert picture.dtype == np.float32
    assert picture[:, 1, 2].tolist() == [3, 4, 0]
    assert workspace.FetchBlob("name").tolist() == [b"name 3", b"name 4", b"name 0"]


def test_one_record_has_its_own_sizes(database: str) -> None:
    run_operator("CreateDB", [], ["reader"], db=database, db_type="minidb")
    assert labels() == 0
    assert labels() == 1
    assert workspace.FetchBlob("picture").shape == (2, 3)


def test_the_last_reference_closes_the_file(database: str) -> None:
    """And not the search for cycles, which may be much later."""
    gc.disable()
    try:
        reader = FileReader("minidb", database)
        assert reader.read() == record(0)
        kept = weakref.ref(reader)
        del reader
        assert kept() is None
    finally:
        gc.enable()


def test_shards_share_the_records(database: str) -> None:
    for shard, expected in ((0, [0, 2, 4, 0]), (1, [1, 3, 1, 3])):
        run_operator(
            "CreateDB", [], ["reader"], db=database, db_type="minidb", num_shards=2, shard_id=shard
        )
        assert labels(batch_size=4) == expected


def test_databases_that_cannot_be_opened_are_refused(database: str) -> None:
    good = {"db": database, "db_type": "minidb"}
    for changed in (
        {"db": database + "x"},
        {"db": ""},
        {"db_type": "leveldb"},
        {"num_shards": 9, "shard_id": 8},
        {"num_shards": 2, "shard_id": 2},
    ):
        with pytest.raises(c10.EnforceNotMet):
            run_operator("CreateDB", [], ["reader"], **{**good, **changed})


def test_outputs_are_as_many_as_tensors(database: str) -> None:
    run_operator("CreateDB", [], ["reader"], db=database, db_type="minidb")
    with pytest.raises(c10.EnforceNotMet, match="3 tensors"):
        run_operator("TensorProtosDBInput", ["reader"], ["picture"])
    workspace.FeedBlob("x", np.zeros(1))
    with pytest.raises(c10.EnforceNotMet, match="reader"):
        run_operator("TensorProtosDBInput", ["x"], ["picture", "label", "name"])


def test_records_come_out_of_queues() -> None:
    run_operator("CreateBlobsQueue", [], ["queue"], capacity=4)
    arguments = {"value_blob_index": 0, "timeout_secs": 0.05}
    run_operator("CreateBlobsQueueDB", ["queue"], ["reader"], **arguments)
    for i, value in enumerate((record(0), np.array([record(1)], object))):
        workspace.FeedBlob("value", value)
        run_operator("SafeEnqueueBlobs", ["queue", "value"], ["value", "failed"])
        assert not workspace.FetchBlob("failed"), i
    assert labels(batch_size=2) == [0, 1]
    with pytest.raises(c10.EnforceNotMet, match="in time"):
        labels(batch_size=1)
    with pytest.raises(c10.EnforceNotMet, match="no blob"):
        run_operator("CreateBlobsQueueDB", ["queue"], ["other"], value_blob_index=1)


def test_two_readers_read_one_lmdb_that_the_script_has_open(tmp_path: Path) -> None:
    """As nets for training and for validation have them, beside a script that counts records."""
    lmdb = pytest.importorskip("lmdb")
    path = str(tmp_path / "db")
    with open_writer("lmdb", path) as db:
        for i in range(5):
            db.put(b"%d" % i, record(i))
    with lmdb.open(path, readonly=True) as env:
        assert env.stat()["entries"] == 5
        for name in ("other", "reader", "reader"):  # the last again, as a cell of a notebook
            run_operator("CreateDB", [], [name], db=path, db_type="lmdb")
        assert labels(batch_size=3) == [0, 1, 2]
    assert labels(batch_size=3) == [3, 4, 0]
