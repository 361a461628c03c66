# SPDX-License-Identifier: Apache-2.0
"""Named counters of the process and of registries, and timers.

Follows caffe2/core/stats.h, PyTorch 1.8.1. Counters are listed in the order of their creation;
Caffe2 lists them in no order.
"""

from __future__ import annotations

import threading

from bridge.c10 import TypeMeta

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class StatRegistry:
    """Named counters, int64."""

    def __init__(self) -> None:
        self.counts: dict[bytes, int] = {}
        self._lock = threading.Lock()

    def add(self, name: str) -> bytes:
        """Create a counter with that name, at 0, unless it exists; return its key."""
        key = name.encode()
        self.counts.setdefault(key, 0)
        return key

    def increment(self, key: bytes, by: int) -> None:
        """Add to a counter, wrapping around like int64."""
        with self._lock:
            total = self.counts.get(key, 0) + by
            self.counts[key] = (total - INT64_MIN) % 2**64 + INT64_MIN

    def export(self, reset: bool) -> dict[bytes, int]:
        """Return a copy of the counters; with `reset` set them to 0."""
        with self._lock:
            found = dict(self.counts)
            if reset:
                self.counts.update(dict.fromkeys(found, 0))
        return found


registered_stats = StatRegistry()
"""The registry of the process, which operators use that are given no other."""


class Timer:
    """A timer: its start in nanoseconds, None once it has ended, and the counter of its times."""

    def __init__(self, name: str = "") -> None:
        self.counter = AverageStat(name, "time_ns")
        self.began: int | None = None


for _class in (StatRegistry, Timer):
    TypeMeta.Register(_class)


class Stat:
    """A counter of the process, named ``group/name``."""

    def __init__(self, group: str, name: str) -> None:
        self._key = registered_stats.add(f"{group}/{name}")

    def put(self, value: int) -> None:
        """Add a value."""
        registered_stats.increment(self._key, value)


class AverageStat:
    """The number and the sum of values."""

    def __init__(self, group: str, name: str) -> None:
        self._sum = Stat(group, f"{name}/sum")
        self._count = Stat(group, f"{name}/count")

    def put(self, value: int) -> None:
        """Add a value."""
        self._count.put(1)
        self._sum.put(value)


class StdDevStat(AverageStat):
    """AverageStat, with the sums of values and of their squares, each less the first value."""

    def __init__(self, group: str, name: str) -> None:
        super().__init__(group, name)
        self._squares = Stat(group, f"{name}/sumsqoffset")
        self._offsets = Stat(group, f"{name}/sumoffset")
        self._first: int | None = None

    def put(self, value: int) -> None:
        """Add a value."""
        if self._first is None:
            self._first = value
        offset = value - self._first
        self._squares.put(offset * offset)
        self._offsets.put(offset)
        super().put(value)
