# SPDX-License-Identifier: Apache-2.0
"""Counters by name: registries of them, and timers.

Follows caffe2/core/stats.h, caffe2/operators/stats_ops.cc, PyTorch 1.8.1;
counters are listed in the order in which they came, Caffe2's in none.
"""

from __future__ import annotations

import threading
import time

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT64, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["AverageStat", "Stat", "StatRegistry", "StdDevStat", "Timer", "registered_stats"]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class StatRegistry:
    """Counters, int64, by their names."""

    def __init__(self) -> None:
        self.counts: dict[bytes, int] = {}
        self._lock = threading.Lock()

    def add(self, name: str) -> bytes:
        """Have a counter of that name, new at 0; give what it is found by."""
        key = name.encode()
        self.counts.setdefault(key, 0)
        return key

    def increment(self, key: bytes, by: int) -> None:
        """Add to a counter, round the ends of int64."""
        with self._lock:
            total = self.counts.get(key, 0) + by
            self.counts[key] = (total - INT64_MIN) % 2**64 + INT64_MIN

    def export(self, reset: bool) -> dict[bytes, int]:
        """Return the counters as they are, and with `reset` let them begin again at 0."""
        with self._lock:
            found = dict(self.counts)
            if reset:
                self.counts.update(dict.fromkeys(found, 0))
        return found


registered_stats = StatRegistry()
"""The registry of the process, which operators use that are given no other."""


class Timer:
    """A time that is taken: `name`, and when it began, in nanoseconds; None once it has ended."""

    def __init__(self, name: str = "") -> None:
        self.counter = AverageStat(name, "time_ns")
        self.began: int | None = None


for _class in (StatRegistry, Timer):
    TypeMeta.Register(_class)


class Stat:
    """A counter of the process, ``group/name``."""

    def __init__(self, group: str, name: str) -> None:
        self._key = registered_stats.add(f"{group}/{name}")

    def put(self, value: int) -> None:
        """Count a value."""
        registered_stats.increment(self._key, value)


class AverageStat:
    """How many values there were, and their sum."""

    def __init__(self, group: str, name: str) -> None:
        self._sum = Stat(group, f"{name}/sum")
        self._count = Stat(group, f"{name}/count")

    def put(self, value: int) -> None:
        """Count a value."""
        self._count.put(1)
        self._sum.put(value)


class StdDevStat(AverageStat):
    """The same, and the sums of values and of their squares, each less the first of them."""

    def __init__(self, group: str, name: str) -> None:
        super().__init__(group, name)
        self._squares = Stat(group, f"{name}/sumsqoffset")
        self._offsets = Stat(group, f"{name}/sumoffset")
        self._first: int | None = None

    def put(self, value: int) -> None:
        """Count a value."""
        if self._first is None:
            self._first = value
        offset = value - self._first
        self._squares.put(offset * offset)
        self._offsets.put(offset)
        super().put(value)


@register_operator("StatRegistryCreate")
class StatRegistryCreate(TorchOperator):
    """A registry of its own, without counters."""

    def RunOnDevice(self) -> None:
        self.OutputBlob(0).Reset(StatRegistry())


class _OfRegistry(TorchOperator):
    """An operator on a registry that is an input, or on that of the process."""

    place = 0

    def registry(self) -> StatRegistry:
        """Return the registry."""
        if self.InputSize() <= self.place:
            return registered_stats
        found: StatRegistry = self.Input(self.place, StatRegistry)
        return found


@register_operator("StatRegistryExport")
class StatRegistryExport(_OfRegistry):
    """Names, values (int64) and the time (int64, nanoseconds since 1970) of all counters.

    With `reset` (on) they begin again at 0.
    """

    def RunOnDevice(self) -> None:
        counts = self.registry().export(bool(self.GetSingleArgument("reset", True)))
        now = time.time_ns()
        self.put_strings(0, [len(counts)], list(counts))
        self.put(1, torch.tensor(list(counts.values()), dtype=torch.int64))
        self.put(2, torch.full((len(counts),), now))


@register_operator("StatRegistryUpdate")
class StatRegistryUpdate(_OfRegistry):
    """Add the values of input 1 (int64) to the counters that input 0 names."""

    place = 2

    def RunOnDevice(self) -> None:
        names, values = self.strings(0), self.integers(1, INT64)
        enforce(len(names) == len(values), f"{len(names)} names are given {len(values)} values.")
        registry = self.registry()
        for name, value in zip(names, values, strict=True):
            registry.increment(name, value)


@register_operator("TimerBegin")
class TimerBegin(TorchOperator):
    """A timer that runs. It counts as `counter_name`, which is by default the output's name."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        name = self.GetSingleArgument("counter_name", self._definition.outputs[0])
        self._timer = Timer(name)

    def RunOnDevice(self) -> None:
        self._timer.began = time.perf_counter_ns()
        self.OutputBlob(0).Reset(self._timer)


class _Timed(TorchOperator):
    """An operator on a timer that runs."""

    def elapsed(self) -> int:
        """Return nanoseconds since the timer began."""
        began = self.timer().began
        enforce(began is not None, f"{self._definition.type} is called on a stopped timer.")
        return time.perf_counter_ns() - (began or 0)

    def timer(self) -> Timer:
        """Return input 0."""
        found: Timer = self.Input(0, Timer)
        return found

    def end(self, elapsed: int) -> None:
        """Stop the timer, and count."""
        timer = self.timer()
        timer.began = None
        timer.counter.put(elapsed)


@register_operator("TimerEnd")
class TimerEnd(_Timed):
    """Stop a timer: its time is added to the counters <name>/time_ns/sum and .../count."""

    def RunOnDevice(self) -> None:
        self.end(self.elapsed())


@register_operator("TimerGet")
class TimerGet(_Timed):
    """The time since a timer began, in nanoseconds, int64."""

    def RunOnDevice(self) -> None:
        self.put_value(0, self.elapsed(), c10.int64)


@register_operator("TimerGetAndEnd")
class TimerGetAndEnd(_Timed):
    """The same, and the timer stops as of TimerEnd."""

    def RunOnDevice(self) -> None:
        elapsed = self.elapsed()
        self.put_value(0, elapsed, c10.int64)
        self.end(elapsed)


@register_operator("WallClockTime")
class WallClockTime(TorchOperator):
    """Nanoseconds since 1970, int64."""

    def RunOnDevice(self) -> None:
        self.put_value(0, time.time_ns(), c10.int64)
