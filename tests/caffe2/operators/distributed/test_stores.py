# SPDX-License-Identifier: Apache-2.0
"""Stores of files, and of a Redis server where there is one."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge import c10
from bridge.caffe2 import workspace
from tests.helpers.isolate import isolated
from tests.helpers.operators import run_operator
from tests.helpers.processes import feed, fetch, together

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_values_of_one_store_are_seen_by_another_on_the_same_folder(tmp_path: Path) -> None:
    for name in ("one", "other"):
        run_operator("FileStoreHandlerCreate", [], [name], path=str(tmp_path / "new" / "folder"))
    run_operator("FileStoreHandlerCreate", [], ["apart"], path=str(tmp_path), prefix="a/b")
    feed("x", [1.0, 2.0])
    run_operator("StoreSet", ["one", "x"], [])
    run_operator("StoreGet", ["other"], ["y"], blob_name="x")
    assert fetch("y") == [1.0, 2.0]
    workspace.FeedBlob("text", "told")
    run_operator("StoreSet", ["other", "text"], [], blob_name="key")
    run_operator("StoreGet", ["one"], ["key"])
    assert workspace.FetchBlob("key") == b"told"
    assert [counted(name) for name in ("one", "other", "one", "apart")] == [2, 4, 6, 2]
    run_operator("StoreWait", ["one"], [], blob_names=["x", "key"])
    feed("names", ["x"], object)
    run_operator("StoreWait", ["one", "names"], [])


def counted(store: str) -> Any:
    run_operator("StoreAdd", [store], ["n"], blob_name="counter", add_value=2)
    return fetch("n")


def test_a_key_that_is_never_set_is_an_error(tmp_path: Path) -> None:
    run_operator("FileStoreHandlerCreate", [], ["store"], path=str(tmp_path))
    feed("y", [3.0])
    with pytest.raises(c10.EnforceNotMet, match=r"Nobody has set 'absent' in .*0\.2 s"):
        run_operator("StoreGet", ["store"], ["y"], blob_name="absent", timeout_ms=200)
    assert fetch("y") == [3.0]
    with pytest.raises(c10.EnforceNotMet, match="Nobody has set 'absent'"):
        run_operator("StoreWait", ["store"], [], blob_names=["absent"], timeout_ms=100)


def test_missing_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(c10.EnforceNotMet, match="path is missing"):
        run_operator("FileStoreHandlerCreate", [], ["store"])
    with pytest.raises(c10.EnforceNotMet, match="host is missing"):
        run_operator("RedisStoreHandlerCreate", [], ["store"], port=1)
    with pytest.raises(c10.EnforceNotMet, match="port is missing"):
        run_operator("RedisStoreHandlerCreate", [], ["store"], host="localhost")
    run_operator("FileStoreHandlerCreate", [], ["store"], path=str(tmp_path))
    with pytest.raises(c10.EnforceNotMet, match="blob_name is missing"):
        run_operator("StoreAdd", ["store"], ["n"])


def test_without_the_package_redis_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(c10.EnforceNotMet, match="pip install redis"):
        run_operator("RedisStoreHandlerCreate", [], ["store"], host="localhost", port=6379)


@pytest.fixture
def redis_port(tmp_path: Path) -> Iterator[int]:
    pytest.importorskip("redis")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "--port", str(port), "--save", "", "--dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            while server.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.01)
            yield port
        finally:
            server.terminate()


def by_redis(rank: int, n: int, folder: Path, port: int) -> None:
    run_operator("RedisStoreHandlerCreate", [], ["store"], host="127.0.0.1", port=port, prefix="p/")
    run_operator("CreateCommonWorld", ["store"], ["world"], size=n, rank=rank, timeout_ms=120_000)
    feed("x", [float(rank)])
    run_operator("Allreduce", ["world", "x"], ["x"])
    assert fetch("x") == [sum(range(n))]
    run_operator("StoreAdd", ["store"], ["n"], blob_name="counter")
    if rank == 0:
        with pytest.raises(c10.EnforceNotMet, match="Nobody has set"):
            run_operator("StoreGet", ["store"], ["y"], blob_name="absent", timeout_ms=200)


@isolated
def _redis(tmp_path: Path, port: int) -> None:
    together(3, by_redis, tmp_path, port)


def test_processes_meet_on_a_redis_server(tmp_path: Path, redis_port: int) -> None:
    _redis(tmp_path=tmp_path, port=redis_port)


def test_no_server_is_an_error() -> None:
    pytest.importorskip("redis")
    with pytest.raises(c10.EnforceNotMet, match="No Redis server answers"):
        run_operator("RedisStoreHandlerCreate", [], ["store"], host="127.0.0.1", port=1)
