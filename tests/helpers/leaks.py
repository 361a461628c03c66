# SPDX-License-Identifier: Apache-2.0
"""Whether a piece of code leaves memory behind each time that it runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROUNDS = 5

_IS_SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
needs_proc = pytest.mark.skipif(
    not sys.platform.startswith("linux") or _IS_SANITIZED,
    reason="memory is read from /proc, and AddressSanitizer keeps for some time what was freed",
)


def resident_bytes() -> int:
    """Return the bytes of physical memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def leaves_nothing(
    run: Callable[[], object], what: str, *, nbytes: int, blocks: int = sys.maxsize
) -> None:
    """Fail unless a call of `run` adds fewer than `nbytes` bytes and `blocks` blocks of Python's.

    A leak adds to each call. What allocators and caches keep for later does not, but may come at
    any time: one call of a few that stays within the limits is enough.
    """
    grown = []
    for _ in range(ROUNDS):
        gc.collect()
        before, resident = sys.getallocatedblocks(), resident_bytes()
        run()
        gc.collect()
        grown.append((sys.getallocatedblocks() - before, resident_bytes() - resident))
        if grown[-1][0] < blocks and grown[-1][1] < nbytes:
            return
    raise AssertionError(f"{what}: each call adds (blocks, bytes) {grown}")
