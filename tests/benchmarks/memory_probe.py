# SPDX-License-Identifier: Apache-2.0
"""The process in which `memory` measures; writes one line of JSON.

Its arguments: `held bridge COUNT` or `held tvm_ffi COUNT` for the bytes per held import,
`growth CYCLES GROUP ...` for the bytes that each route of some groups leaves.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import tvm_ffi

import bridge
from tests.benchmarks.loop import compile_loop
from tests.helpers.routes import STATEMENTS, names_of

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Give the bytes of this process that are in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def bytes_per_import(take: Callable[[Any], Any], count: int) -> float:
    """Hold `count` imports of one tensor; what each adds to the process."""
    t = torch.zeros((2, 3))
    held: list[Any] = [0] * count
    for index in range(min(count, 1000)):  # whatever is made once, is made now
        held[index] = take(t)
    gc.collect()
    start = min(count, 1000)
    before = resident()
    for index in range(start, count):
        held[index] = take(t)
    return (resident() - before) / max(1, count - start)


def growth(cycles: int, statements: Iterable[str], names: dict[str, Any]) -> dict[str, int]:
    """Run each statement `cycles` times and drop its result; the bytes that stay, by statement."""
    grown = {}
    for statement in statements:
        run = compile_loop(statement, names)
        run(max(10, cycles // 20))
        gc.collect()
        before = resident()
        run(cycles)
        gc.collect()
        grown[f"`{statement}`"] = resident() - before
    return grown


def growth_of_routes(cycles: int, groups: Iterable[str]) -> dict[str, int]:
    """Go round each way in, out and across `cycles` times."""
    grown = {}
    for group in groups:
        names = names_of(group)
        gc.collect()
        gc.freeze()  # collections then pass over what the import of a framework left
        grown.update(growth(cycles, STATEMENTS[group], names))
    return grown


def report(task: str, *arguments: str) -> object:
    """Do one task, and return what is reported of it."""
    if task == "held":
        which, count = arguments
        take = {"bridge": bridge.from_dlpack, "tvm_ffi": tvm_ffi.from_dlpack}[which]
        return bytes_per_import(take, int(count))
    cycles, *groups = arguments
    return growth_of_routes(int(cycles), groups)


if __name__ == "__main__":
    print(json.dumps(report(*sys.argv[1:])))
