# SPDX-License-Identifier: Apache-2.0
"""Stores, the keys and values through which processes find each other, and operators on them.

Follows caffe2/distributed, PyTorch 1.8.1. Other than there, a store of files counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import torch

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.blobs.serialize import deserialize, serialize
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure

DEFAULT_TIMEOUT = timedelta(seconds=30)
"""How long an operator waits for the other processes, unless its arguments say so; as in Caffe2."""


class StoreHandler:
    """A store of torch (`torch.distributed.Store`), and where it is, for errors."""

    def __init__(self, store: Any = None, place: str = "") -> None:
        self.store = store
        self.place = place

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        """Return once all keys are set. Raises EnforceNotMet: they are not within `timeout`."""
        if not keys:
            return
        try:
            self.store.wait(keys, timeout)
        except (RuntimeError, OSError) as cause:
            missing = [key for key in keys if not self.store.check([key])]
            if not missing:
                raise
            raise EnforceNotMet(
                f"Nobody has set {', '.join(map(repr, missing))} in {self.place} within "
                f"{timeout.total_seconds():g} s. Check that all processes run, and use the same "
                "store; the argument timeout_ms waits longer.",
                condition="the keys are set within the time-out",
            ) from cause


TypeMeta.Register(StoreHandler)


def file_store(path: str, prefix: str) -> StoreHandler:
    """Return a store in a file of the folder `path`, which is made if it is not there."""
    require_distributed()
    distributed: Any = torch.distributed  # which does not export its stores to type checkers
    os.makedirs(path, exist_ok=True)
    file = os.path.join(path, f"store-{quote(prefix, safe='')}")
    # Without the number of processes torch does not remove the file when one of them ends.
    return StoreHandler(distributed.FileStore(file, -1), f"the store {file}")


def require_distributed() -> None:
    """Raise EnforceNotMet unless torch was built with its distributed package."""
    if not torch.distributed.is_available():
        raise EnforceNotMet(
            "This torch was built without torch.distributed, which operators of several processes "
            "need. Install one that has it: torch.distributed.is_available() is then True."
        )


def timeout_of(op: Any, default: timedelta | None = DEFAULT_TIMEOUT) -> Any:
    """Return the argument `timeout_ms` or `timeout_sec` of an operator; `default` if it has none.

    Zero and less mean the default, too.
    """
    milliseconds = op.GetSingleArgument("timeout_ms", -1)
    if milliseconds <= 0:
        milliseconds = 1000 * op.GetSingleArgument("timeout_sec", -1)
    return timedelta(milliseconds=milliseconds) if milliseconds > 0 else default


_POLL_S = 0.01


def redis_store(host: str, port: int, prefix: str) -> StoreHandler:
    """Return a store on the Redis server at host:port, whose keys begin with `prefix`.

    Raises EnforceNotMet: the package `redis` is not installed, or no server answers there.
    """
    require_distributed()
    try:
        import redis
    except ImportError as cause:
        raise EnforceNotMet(
            "RedisStoreHandlerCreate needs the package redis: pip install redis. A folder that all "
            "processes see needs nothing: FileStoreHandlerCreate."
        ) from cause
    client = redis.Redis(host=host, port=port, socket_timeout=DEFAULT_TIMEOUT.total_seconds())
    try:
        client.ping()
    except redis.RedisError as cause:
        raise EnforceNotMet(f"No Redis server answers at {host}:{port}: {cause}") from cause
    return StoreHandler(_store_class()(client, prefix), f"the Redis server {host}:{port}")


_class: list[type] = []


def _store_class() -> type:
    """Return a class of torch's stores; made at first use, since its base is torch's."""
    if _class:
        return _class[0]
    from torch.distributed.distributed_c10d import Store

    class RedisStore(Store):
        """The methods of a store that torch calls from its own threads, too."""

        def __init__(self, client: Any, prefix: str) -> None:
            super().__init__()
            self._client = client
            self._prefix = prefix

        def _key(self, key: str) -> str:
            return self._prefix + key

        def set(self, key: str, value: str | bytes) -> None:
            """Set the value of a key."""
            self._client.set(self._key(key), value)

        def get(self, key: str) -> bytes:
            """Return the value of a key, once it is set."""
            self.wait([key])
            return self._client.get(self._key(key))

        def add(self, key: str, step: int) -> int:
            """Add to a counter; return its new value."""
            return int(self._client.incrby(self._key(key), step))

        def check(self, keys: Sequence[str]) -> bool:
            """Return whether all keys are set."""
            names = {self._key(key) for key in keys}
            return int(self._client.exists(*names)) == len(names)

        def delete_key(self, key: str) -> bool:
            """Remove a key; return whether it was there."""
            return bool(self._client.delete(self._key(key)))

        def wait(self, keys: Sequence[str], timeout: timedelta = DEFAULT_TIMEOUT) -> None:
            """Return once all keys are set. Raises TimeoutError."""
            end = time.monotonic() + timeout.total_seconds()
            while not self.check(keys):
                if time.monotonic() > end:
                    raise TimeoutError(f"wait timeout for {list(keys)}")
                time.sleep(_POLL_S)

    _class.append(RedisStore)
    return RedisStore


@procedure("FileStoreHandlerCreate", ("cpu", "cuda"), inputs="0", outputs="1", effects=True)
def file_store_handler_create(op: TorchOperator) -> None:
    """Create a store in the folder `path`, which all processes see.

    `prefix` (""): stores of different prefixes have different keys. A folder that an earlier run
    has used still has its keys; give each run its own.
    """
    path = op.GetSingleArgument("path", "")
    require(bool(path), "The argument path is missing, a folder that all processes see.")
    op.OutputBlob(0).Reset(file_store(path, op.GetSingleArgument("prefix", "")))


@procedure("RedisStoreHandlerCreate", inputs="0", outputs="1", effects=True)
def redis_store_handler_create(op: TorchOperator) -> None:
    """Create a store on the Redis server at `host`, `port`, whose keys begin with `prefix` ("")."""
    host, port = op.GetSingleArgument("host", ""), op.GetSingleArgument("port", 0)
    require(bool(host), "The argument host is missing, the name of the Redis server.")
    require(port > 0, "The argument port is missing, that of the Redis server.")
    op.OutputBlob(0).Reset(redis_store(host, port, op.GetSingleArgument("prefix", "")))


def _key(op: TorchOperator, blob: str) -> str:
    """Return the argument `blob_name`, by default the name of the blob itself."""
    return op.GetSingleArgument("blob_name", "") or blob


@procedure("StoreSet", inputs="2", outputs="0", effects=True)
def store_set(op: TorchOperator) -> None:
    """Set the key `blob_name` (the blob's name) to the value of input 1."""
    name = op._definition.inputs[1]
    op.Input(0, StoreHandler).store.set(
        _key(op, name), serialize(op.InputBlob(1), name, "StoreSet", name)
    )


@procedure("StoreGet", inputs="1", outputs="1", effects=True)
def store_get(op: TorchOperator) -> None:
    """Set the output to the value of the key `blob_name` (the output's name), once it is set.

    Raises EnforceNotMet: it is not set within `timeout_ms` (30,000).
    """
    key = _key(op, op._definition.outputs[0])
    handler = op.Input(0, StoreHandler)
    handler.wait([key], timeout_of(op))
    data = handler.store.get(key)
    deserialize(op.OutputBlob(0), data, f"The key {key!r}", "StoreGet")


@procedure("StoreAdd", inputs="1", outputs="1", effects=True)
def store_add(op: TorchOperator) -> None:
    """Add `add_value` (1) to the counter `blob_name`; the output is its new value, an int64."""
    name = op.GetSingleArgument("blob_name", "")
    require(bool(name), "The argument blob_name is missing, the key of the counter.")
    step = op.GetSingleArgument("add_value", 1)
    op.put_value(0, int(op.Input(0, StoreHandler).store.add(name, step)), c10.int64)


@procedure("StoreWait", inputs="1-2", outputs="0", effects=True)
def store_wait(op: TorchOperator) -> None:
    """Wait until all keys are set: the strings of input 1, or the argument `blob_names`.

    Raises EnforceNotMet: they are not within `timeout_ms` (30,000).
    """
    names = op.GetRepeatedArgument("blob_names", ())
    if op.InputSize() > 1:
        require(not names, "The names are input 1 or the argument blob_names, not both.")
        names = [name.decode() for name in op.strings(1)]
    op.Input(0, StoreHandler).wait(list(names), timeout_of(op))
