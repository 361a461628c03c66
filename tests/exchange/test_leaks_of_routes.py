# SPDX-License-Identifier: Apache-2.0
"""Every route, with every framework, leaves nothing: the million cycles of the benchmark in short.

A group runs in a process of its own, whose memory no other test uses.
"""

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

from bridge import c10
from tests.helpers.isolate import isolated
from tests.helpers.leaks import leaves_nothing, needs_proc
from tests.helpers.routes import OPTIONAL, STATEMENTS, Names, is_here, names_of

# 16 KiB: that data of one cycle in fifty stays is seen in the memory of the process.
SIZES = (64, 64)
CYCLES = 1500
SLACK_BYTES = 512 * 1024
# The objects of a route that must be free afterwards.
WATCHED = ("a", "c", "n", "t", "f", "j", "e", "arrow", "byte_array", "doubles", "mapped", "message")


def compiled(statement: str, names: Names) -> Callable[[], Any]:
    """A function that runs the statement a hundred times and drops what it gives."""
    scope = dict(names)
    exec(f"def run():\n    for _ in range(100):\n        {statement}", scope)
    run: Callable[[], Any] = scope["run"]
    return run


def state(names: Names) -> dict[str, int]:
    """Counts that are to come back: references, and the bytes of the allocator."""
    seen = {name: sys.getrefcount(names[name]) for name in WATCHED if name in names}
    seen["allocated"] = c10.GetAllocator("cpu").stats.allocated_bytes
    return seen


def check(statement: str, names: Names) -> None:
    run = compiled(statement, names)
    for _ in range(CYCLES // 200):
        run()
    gc.collect()
    before = state(names)

    def cycle() -> None:
        for _ in range(CYCLES // 100):
            run()

    leaves_nothing(cycle, statement, nbytes=SLACK_BYTES, blocks=CYCLES // 10)
    assert state(names) == before, statement


@needs_proc
@pytest.mark.parametrize("group", STATEMENTS)
@isolated
def test_a_group_leaves_nothing(group: str) -> None:
    if not is_here(group):
        pytest.skip(f"{group} is not installed")
    names = names_of(group, SIZES)
    gc.freeze()  # what the framework's import made is not looked through again and again
    for statement in STATEMENTS[group]:
        check(statement, names)


@isolated
def test_the_check_finds_objects_bytes_and_tensors_that_stay() -> None:
    kept: list[Any] = []
    for statement in ("kept.append(n)", "kept.append(bytes(16384))", "kept.append(at.zeros(1))"):
        with pytest.raises(AssertionError, match="kept"):
            check(statement, {**names_of("numpy", SIZES), "kept": kept})


def test_every_framework_is_asked_for() -> None:
    assert set(OPTIONAL) < set(STATEMENTS)
