# SPDX-License-Identifier: Apache-2.0
"""The child of ``bridge doctor``: imports frameworks and converts between them, and may crash.

``python -m bridge.shell.probe FILE TASKS``: TASKS is JSON, a list of ``["import", name]`` and
``["convert", source, target]``; conversions of frameworks that could not be imported are left out.
Before each task and after it a line of JSON is added to FILE, so that the parent knows which task
a crash was the end of; the first has the bytes that stderr, a file, has so far.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

_VALUES = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
_REPEATS = 5
# How a framework makes a tensor in memory of its own; others get it from `bridge.convert`.
_NATIVE: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda numpy: numpy.array(_VALUES, numpy.float32),
    "torch": lambda torch: torch.tensor(_VALUES),
    "jax": lambda jax: jax.numpy.array(_VALUES, "float32"),
    "tensorflow": lambda tensorflow: tensorflow.constant(_VALUES),
    "paddle": lambda paddle: paddle.to_tensor(_VALUES),
    "cupy": lambda cupy: cupy.array(_VALUES, "float32"),
    "mlx": lambda mlx: import_module("mlx.core").array(_VALUES),
    "mindspore": lambda mindspore: mindspore.Tensor(_VALUES, mindspore.float32),
}


def _import(name: str) -> dict[str, Any]:
    """Import a framework, and the bridge's module for it; return its version."""
    import bridge

    module = None if name in ("at", "caffe2") else import_module(name)
    bridge.convert(bridge.at.zeros(2, 3), name)
    return {"version": str(getattr(module, "__version__", "") or "")}


def _source(name: str) -> Any:
    import bridge

    if name in _NATIVE:
        return _NATIVE[name](import_module(name))
    # (not at.tensor, which needs torch)
    return bridge.convert(bridge.asarray(_VALUES, dtype="float32"), name)


def _convert(source: str, target: str) -> dict[str, Any]:
    """Convert a tensor, compare values and addresses; return how, the seconds, and the fault.

    The time is the shortest of some conversions after the first.
    """
    import bridge

    x = _source(source)
    with bridge.audit() as log:
        y = bridge.convert(x, target)
    found = bridge.to_numpy(bridge.from_dlpack(y)).tolist()
    if found != _VALUES:
        return {"result": "error", "reason": f"the values are {found}, not {_VALUES}"}
    shared = y is x or bridge.shares_memory(x, y)
    if shared == any(record.copied for record in log):
        return {
            "result": "error",
            "reason": f"the audit says {log.records[-1].how if log.records else 'nothing'}, the "
            f"addresses say {'shared' if shared else 'copied'}",
        }
    seconds = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        bridge.convert(x, target)
        seconds.append(time.perf_counter() - start)
    return {"result": "shared" if shared else "copied", "seconds": min(seconds)}


def _reason(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def main(path: str, tasks: list[list[str]]) -> None:
    """Do the tasks, and add the outcome of each to a file."""
    with open(path, "a", encoding="utf-8") as out:
        failed: set[str] = set()
        for task in tasks:
            if not failed.isdisjoint(task[1:]):
                continue
            said = os.fstat(2).st_size
            print(json.dumps({"task": task, "said": said}), file=out, flush=True)
            try:
                done = _import(task[1]) if task[0] == "import" else _convert(task[1], task[2])
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  a framework may raise anything, SystemExit too
                done = {"result": "error", "reason": _reason(error)}
                if task[0] == "import":
                    failed.add(task[1])
            print(json.dumps({"task": task, **done}), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
    # Frameworks may crash or hang when they are torn down; all that was asked for is done.
    os._exit(0)
