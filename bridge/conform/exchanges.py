# SPDX-License-Identifier: Apache-2.0
"""One producer and one consumer: values, the bytes that stay in use, and calls of the deleters."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np

from bridge.annotation import Any
from bridge.conform.isolation import isolated
from bridge.conform.kit.given import given, settle
from bridge.conform.kit.structures import (
    DELETER,
    DLManagedTensor,
    DLManagedTensorVersioned,
    capsule_name,
    capsule_pointer,
)

_KEPT: list[Any] = []
_LIMIT = 10.0  # seconds for all orders


class _Counted:
    """A producer's tensor, with deleters that are counted and then do their work."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.calls: list[int] = []  # of the deleter of each export
        self.starts: list[int] = []  # where the data of each export begins

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **arguments: Any) -> Any:
        capsule = self.tensor.__dlpack__(**arguments)
        name = capsule_name(capsule)
        kind = DLManagedTensorVersioned if name == b"dltensor_versioned" else DLManagedTensor
        managed: Any = kind.from_address(capsule_pointer(capsule, name))
        calls, number, deleter = self.calls, len(self.calls), managed.deleter
        calls.append(0)
        self.starts.append((managed.data or 0) + managed.byte_offset)

        def delete(argument: int) -> None:
            calls[number] += 1
            if deleter and calls[number] == 1:
                DELETER(deleter)(argument)

        callback = DELETER(delete)
        _KEPT.append(callback)
        managed.deleter = ctypes.cast(callback, ctypes.c_void_p).value
        return capsule


def exchanged(producer: Any, consumer: Any) -> dict[str, Any]:
    """Return the outcome of passing tensors from a producer to a consumer, in a forked process.

    producer, consumer: their parts by name, or the reason why there are none.
    """
    nothing = {"values": None, "bytes_before": None, "bytes_after": None, "deleters": None}
    for parts in (producer, consumer):
        if isinstance(parts, str):
            return {"outcome": "n/a", **nothing, "seen": parts}
    if "make" not in producer:
        return {"outcome": "n/a", **nothing, "seen": "the producer has no make"}
    if "from_dlpack" not in consumer or "to_numpy" not in consumer:
        return {"outcome": "n/a", **nothing, "seen": "it imports nothing that can be read"}
    how, found = isolated(lambda: _exchange(producer, consumer), _LIMIT)
    return found if how == "done" else {"outcome": how, **nothing, "seen": found}


def _exchange(producer: Any, consumer: Any) -> dict[str, Any]:
    """Exchange a tensor once for each order of release; return the observations."""
    wanted: Any = np.arange(12, dtype="f4").reshape(3, 4)
    try:
        producer["make"](given(wanted)[0])
    except Exception:  # noqa: BLE001  a library whose tensors have one dimension
        wanted = wanted.reshape(-1)
    found: dict[str, Any] = {"outcome": "ok", "values": None, "bytes_before": 0, "bytes_after": 0}
    found |= {"deleters": None, "seen": ""}
    calls: list[int] = []
    shared = False
    for order in itertools.permutations(("tensor", "result", "view")):
        array, watch = given(wanted)
        held: dict[str, Any] = {}
        try:
            held["tensor"] = _Counted(producer["make"](array))
            held["result"] = consumer["from_dlpack"](held["tensor"])
            held["view"] = consumer["to_numpy"](held["result"])
            found["values"] = np.array_equal(held["view"], wanted)
            shared = held["view"].ctypes.data in held["tensor"].starts
        except Exception as error:  # noqa: BLE001  whatever the libraries raise
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            return {
                **found,
                "outcome": "n/a",
                "bytes_before": None,
                "bytes_after": None,
                "seen": text,
            }
        counted = held["tensor"].calls
        del array
        for name in order:
            del held[name]
            settle()
            if "view" in held and not np.array_equal(held["view"], wanted):
                found |= {"outcome": "broken", "seen": f"values changed when {name} was released"}
        calls += counted
        found["bytes_after"] += wanted.nbytes if watch.alive() else 0
        del counted
    found["deleters"] = 1 if set(calls) == {1} else max(calls, key=lambda n: abs(n - 1), default=0)
    if not found["values"]:
        found |= {"outcome": "broken", "seen": "the values are others"}
    elif found["deleters"] != 1:
        found |= {"outcome": "broken", "seen": f"a deleter was called {found['deleters']} times"}
    elif found["bytes_after"]:
        found |= {"outcome": "broken", "seen": "memory is in use after all was released"}
    found["seen"] = found["seen"] or ("shared" if shared else "copied")
    if wanted.ndim == 1:
        found["seen"] += ", of one dimension"
    return found
