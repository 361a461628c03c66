# SPDX-License-Identifier: Apache-2.0
"""A store on a Redis server, by the package `redis`.

Follows caffe2/distributed/redis_store_handler.cc, PyTorch 1.8.1, with the same keys: those of other
programs on that server do not matter, since each key begins with the prefix.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.operators.distributed.store_handlers import (
    DEFAULT_TIMEOUT,
    StoreHandler,
    require_distributed,
)

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
