# SPDX-License-Identifier: Apache-2.0
"""StoreHandler: the keys and values through which processes find each other.

Follows caffe2/distributed, PyTorch 1.8.1.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import torch

from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet

DEFAULT_TIMEOUT = timedelta(seconds=30)
"""How long an operator waits for the other processes, unless its arguments say so; as in Caffe2."""


class StoreHandler:
    """A store of torch (`torch.distributed.Store`), and where it is, for errors."""

    def __init__(self, store: Any = None, place: str = "") -> None:
        self.store = store
        self.place = place

    def set(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        self.store.set(key, value)

    def get(self, key: str, timeout: timedelta) -> bytes:
        """Return the value of a key, once some process has set it. Raises as `wait`."""
        self.wait([key], timeout)
        return self.store.get(key)

    def add(self, key: str, step: int) -> int:
        """Add to the counter at `key`, which starts at 0; return its new value. It is atomic."""
        return int(self.store.add(key, step))

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
