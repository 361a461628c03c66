# SPDX-License-Identifier: Apache-2.0
"""Operators on objects that threads share: each step is taken whole."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.files.databases import open_writer
from bridge.caffe2.proto import caffe2_pb2

pytestmark = pytest.mark.usefixtures("fresh_workspace")

THREADS, ROUNDS = 4, 150


@pytest.fixture(autouse=True)
def often_switched() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run(op_type: str, inputs: list[str], outputs: list[str], **args: object) -> None:
    workspace.RunOperatorOnce(core.CreateOperator(op_type, inputs, outputs, **args))


def in_threads(work: Callable[[int], None]) -> None:
    """Run `work` of the thread's number in each thread, `ROUNDS` times."""
    errors: list[BaseException] = []

    def repeat(number: int) -> None:
        try:
            for _ in range(ROUNDS):
                work(number)
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            errors.append(error)

    threads = [threading.Thread(target=repeat, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert errors == []


def test_counters_give_each_number_once() -> None:
    run("CreateCounter", [], ["counter"])
    seen: list[int] = []

    def count(number: int) -> None:
        run("CountUp", ["counter"], [f"was{number}"])
        seen.append(int(workspace.FetchBlob(f"was{number}")))

    in_threads(count)
    assert sorted(seen) == list(range(THREADS * ROUNDS))


@pytest.mark.parametrize(("op_type", "dtype"), [("", np.int32), ("64", np.int64)])
def test_atomic_additions_are_not_lost(op_type: str, dtype: type) -> None:
    run("CreateMutex", [], ["mutex"])
    workspace.FeedBlob("sum", np.array([0], dtype))
    workspace.FeedBlob("step", np.array([3], dtype))
    in_threads(
        lambda i: run(f"AtomicFetchAdd{op_type}", ["mutex", "sum", "step"], ["sum", f"was{i}"])
    )
    assert workspace.FetchBlob("sum") == 3 * THREADS * ROUNDS


def test_atomic_iterations_are_not_lost() -> None:
    run("CreateMutex", [], ["mutex"])
    workspace.FeedBlob("iter", np.array([0]))
    in_threads(lambda _: run("AtomicIter", ["mutex", "iter"], ["iter"]))
    assert workspace.FetchBlob("iter") == [THREADS * ROUNDS]


def test_atomic_appends_keep_every_row() -> None:
    run("CreateMutex", [], ["mutex"])
    workspace.FeedBlob("rows", np.zeros((0, 2), np.float32))
    for i in range(THREADS):
        workspace.FeedBlob(f"more{i}", np.full((1, 2), i, np.float32))
    in_threads(lambda i: run("AtomicAppend", ["mutex", "rows", f"more{i}"], ["rows"]))
    found = workspace.FetchBlob("rows")
    assert found.shape == (THREADS * ROUNDS, 2)
    assert np.bincount(found[:, 0].astype(int)).tolist() == [ROUNDS] * THREADS


def test_statistics_are_not_lost() -> None:
    run("StatRegistryCreate", [], ["registry"])
    workspace.FeedBlob("names", np.array([b"hits"], object))
    workspace.FeedBlob("ones", np.array([1]))
    in_threads(lambda _: run("StatRegistryUpdate", ["names", "ones", "registry"], []))
    run("StatRegistryExport", ["registry"], ["keys", "values", "time"])
    assert workspace.FetchBlob("values").tolist() == [THREADS * ROUNDS]


def test_an_index_gives_each_key_one_number() -> None:
    run("LongIndexCreate", [], ["index"])
    for i in range(THREADS):
        workspace.FeedBlob(f"keys{i}", np.arange(i, 40 + i))

    found: dict[tuple[int, ...], int] = {}

    def get(i: int) -> None:
        run("IndexGet", ["index", f"keys{i}"], [f"places{i}"])
        found[(i, *workspace.FetchBlob(f"places{i}").tolist())] = i

    in_threads(get)
    assert len(found) == THREADS  # the same numbers each time
    run("IndexSize", ["index"], ["size"])
    assert workspace.FetchBlob("size") == 40 + THREADS


def test_a_cursor_gives_each_record_once() -> None:
    total = THREADS * ROUNDS
    workspace.FeedBlob("column", np.arange(total))
    run("CreateTreeCursor", [], ["cursor"], fields=["field"])
    seen: list[int] = []

    def read(i: int) -> None:
        run("ReadNextBatch", ["cursor", "column"], [f"read{i}"])
        seen.extend(workspace.FetchBlob(f"read{i}").tolist())

    in_threads(read)
    assert sorted(seen) == list(range(total))


def test_a_reader_of_a_file_gives_each_record_as_often(tmp_path: Path) -> None:
    records, path = 5, str(tmp_path / "db")
    with open_writer("minidb", path) as db:
        for i in range(records):
            protos = caffe2_pb2.TensorProtos()
            one = protos.protos.add()
            one.data_type = caffe2_pb2.TensorProto.INT32
            one.int32_data.append(i)
            db.put(b"%d" % i, protos.SerializeToString())
    run("CreateDB", [], ["reader"], db=path, db_type="minidb")
    seen: list[int] = []

    def read(i: int) -> None:
        run("TensorProtosDBInput", ["reader"], [f"read{i}"])
        seen.append(int(workspace.FetchBlob(f"read{i}")))

    in_threads(read)
    assert np.bincount(seen).tolist() == [THREADS * ROUNDS // records] * records
