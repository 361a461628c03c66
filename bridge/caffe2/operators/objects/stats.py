# SPDX-License-Identifier: Apache-2.0
"""Named counters of the process and of registries, timers, and the operators on them.

Counters are listed in the order of their creation; Caffe2 lists them in no order.
Follows core/stats.h, operators/stats_ops.cc and operators/stats_put_ops.h in caffe2, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import torch

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import INT64, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator

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


@register_operator("StatRegistryCreate", inputs="0", outputs="1")
class StatRegistryCreate(TorchOperator):
    """Create an empty registry."""

    def RunOnDevice(self) -> None:
        self.OutputBlob(0).Reset(StatRegistry())


class _OfRegistry(TorchOperator):
    """An operator on the registry in an input, or on that of the process."""

    place = 0

    def registry(self) -> StatRegistry:
        """Return the registry."""
        if self.InputSize() <= self.place:
            return registered_stats
        return self.Input(self.place, StatRegistry)


@register_operator("StatRegistryExport", inputs="0-1", outputs="3")
class StatRegistryExport(_OfRegistry):
    """Names, values (int64) and the time (int64, nanoseconds since 1970) of all counters.

    With `reset` (True) the counters are then set to 0.
    """

    def RunOnDevice(self) -> None:
        counts = self.registry().export(bool(self.GetSingleArgument("reset", True)))
        now = time.time_ns()
        self.put_strings(0, [len(counts)], list(counts))
        self.put(1, torch.tensor(list(counts.values()), dtype=torch.int64))
        self.put(2, torch.full((len(counts),), now))


@register_operator("StatRegistryUpdate", inputs="2-3", outputs="0")
class StatRegistryUpdate(_OfRegistry):
    """Add the values in input 1 (int64) to the counters named in input 0."""

    place = 2

    def RunOnDevice(self) -> None:
        names, values = self.strings(0), self.integers(1, INT64)
        require(
            len(names) == len(values), f"There are {len(names)} names, but {len(values)} values."
        )
        registry = self.registry()
        for name, value in zip(names, values, strict=True):
            registry.increment(name, value)


@register_operator("TimerBegin", inputs="0", outputs="1")
class TimerBegin(TorchOperator):
    """Start a timer, whose counter is `counter_name`, by default the output's name."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        name = self.GetSingleArgument("counter_name", self._definition.outputs[0])
        self._timer = Timer(name)

    def RunOnDevice(self) -> None:
        self._timer.began = time.perf_counter_ns()
        self.OutputBlob(0).Reset(self._timer)


class _Timed(TorchOperator):
    """An operator on a running timer."""

    def elapsed(self) -> int:
        """Return the nanoseconds since the timer was started."""
        began = self.timer().began
        require(began is not None, f"{self._definition.type} is called on a stopped timer.")
        return time.perf_counter_ns() - (began or 0)

    def timer(self) -> Timer:
        """Return input 0."""
        return self.Input(0, Timer)

    def end(self, elapsed: int) -> None:
        """Stop the timer, and add the time to its counter."""
        timer = self.timer()
        timer.began = None
        timer.counter.put(elapsed)


@register_operator("TimerEnd", inputs="1", outputs="0")
class TimerEnd(_Timed):
    """Stop a timer: its time is added to the counters <name>/time_ns/sum and .../count."""

    def RunOnDevice(self) -> None:
        self.end(self.elapsed())


@register_operator("TimerGet", inputs="1", outputs="1")
class TimerGet(_Timed):
    """The time since a timer was started, in nanoseconds, int64."""

    def RunOnDevice(self) -> None:
        self.put_value(0, self.elapsed(), c10.int64)


@register_operator("TimerGetAndEnd", inputs="1", outputs="1")
class TimerGetAndEnd(_Timed):
    """TimerGet, whose output has one dimension here, then TimerEnd."""

    def RunOnDevice(self) -> None:
        elapsed = self.elapsed()
        self.Output(0, [1], c10.int64).mutable_data()[:] = elapsed
        self.end(elapsed)


@register_operator("WallClockTime", inputs="0", outputs="1", gradient="undefined")
class WallClockTime(TorchOperator):
    """Nanoseconds since 1970, int64."""

    def RunOnDevice(self) -> None:
        self.put_value(0, time.time_ns(), c10.int64)


_FLOATING = (c10.float32, c10.float16, c10.float64)
_PUT_TYPES = (*_FLOATING, c10.uint8, c10.int8, c10.uint16, c10.int16, c10.int32, c10.int64)


_KINDS: dict[str, type[Stat | AverageStat]] = {
    "IncrementPut": Stat,
    "AveragePut": AverageStat,
    "StdDevPut": StdDevStat,
}


@register_operator("IncrementPut", inputs="1", outputs="0")
@register_operator("AveragePut", inputs="1", outputs="0")
@register_operator("StdDevPut", inputs="1", outputs="0")
class Put(TorchOperator):
    """Add the first element of input 0, times `magnitude_expand` (1), as an integer, to counters.

    The counters are named by `stat_name`, by default the input's name. `default_value` is used if
    the input is empty. With `bound` NaN is 0, and values out of range are clamped to int64.

    IncrementPut has the counter <name>/stat_value; AveragePut <name>/stat_value/sum and .../count;
    StdDevPut these, .../sumoffset and .../sumsqoffset.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        name = self.GetSingleArgument("stat_name", self._definition.inputs[0])
        self._stat = _KINDS[self._definition.type](name, "stat_value")
        self._expand = self.GetSingleArgument("magnitude_expand", 1)
        require(self._expand != 0, "The argument magnitude_expand must not be 0.")

    def RunOnDevice(self) -> None:
        self._stat.put(self.whole(self.value()))

    def value(self) -> int | float:
        """Return the first element, or `default_value`."""
        dtype = self.Input(0).dtype()
        x = self.x(0, _PUT_TYPES)
        if x.numel():
            return x.reshape(-1)[0].item()
        require(
            self.HasArgument("default_value"),
            f"Blob {self._definition.inputs[0]!r} is empty, and default_value is not set.",
        )
        default: float = self.GetSingleArgument("default_value", 0.0)
        return default if dtype in _FLOATING else int(default)

    def whole(self, value: int | float) -> int:
        """Return the integer that is added for a value."""
        most = int(INT64_MAX / self._expand)
        if self.GetSingleArgument("bound", False):
            if math.isnan(value):
                return 0
            if abs(value) >= most:
                return INT64_MIN if value < 0 else INT64_MAX
        else:
            require(not math.isnan(value), "The value must not be NaN, unless `bound` is set.")
            require(abs(value) < most, f"{value} times {self._expand} is out of range of int64.")
        return int(value * self._expand)
