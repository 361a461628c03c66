# SPDX-License-Identifier: Apache-2.0
"""Named counters of the process and of registries, timers, and the operators on them.

Counters are listed in the order of their creation; Caffe2 lists them in no order.
Follows core/stats.h, operators/stats_ops.cc and operators/stats_put_ops.h in caffe2, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from typing import Any

import torch

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import INT64, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure

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
        self.counter = Stat(name, "time_ns", _AVERAGE)
        self.began: int | None = None


for _class in (StatRegistry, Timer):
    TypeMeta.Register(_class)


class Stat:
    """Counters of the process, named ``group/name`` and a part of what values add to each.

    `parts`: the first ones of the values, their number, the squares of what they are more than the
    first value, and that itself.
    """

    def __init__(self, group: str, name: str, parts: Sequence[str] = ("",)) -> None:
        self._keys = [registered_stats.add(f"{group}/{name}{part}") for part in parts]
        self._first: int | None = None

    def put(self, value: int) -> None:
        """Add a value."""
        if self._first is None:
            self._first = value
        offset = value - self._first
        for key, amount in zip(self._keys, (value, 1, offset * offset, offset), strict=False):
            registered_stats.increment(key, amount)


_AVERAGE = ("/sum", "/count")
# The parts of the counters of values.
_PARTS: dict[str, Sequence[str]] = {
    "IncrementPut": ("",),
    "AveragePut": _AVERAGE,
    "StdDevPut": (*_AVERAGE, "/sumsqoffset", "/sumoffset"),
}


@procedure("StatRegistryCreate", inputs="0", outputs="1")
def stat_registry_create(op: TorchOperator) -> None:
    """Create an empty registry."""
    op.OutputBlob(0).Reset(StatRegistry())


def _registry(op: TorchOperator, place: int) -> StatRegistry:
    """Return the registry in input `place`, or that of the process."""
    return op.Input(place, StatRegistry) if op.InputSize() > place else registered_stats


@procedure("StatRegistryExport", inputs="0-1", outputs="3")
def stat_registry_export(op: TorchOperator) -> None:
    """Names, values (int64) and the time (int64, nanoseconds since 1970) of all counters.

    With `reset` (True) the counters are then set to 0.
    """
    counts = _registry(op, 0).export(bool(op.GetSingleArgument("reset", True)))
    now = time.time_ns()
    op.put_strings(0, [len(counts)], list(counts))
    op.put(1, torch.tensor(list(counts.values()), dtype=torch.int64))
    op.put(2, torch.full((len(counts),), now))


@procedure("StatRegistryUpdate", inputs="2-3", outputs="0")
def stat_registry_update(op: TorchOperator) -> None:
    """Add the values in input 1 (int64) to the counters named in input 0."""
    names, values = op.strings(0), op.integers(1, INT64)
    require(len(names) == len(values), f"There are {len(names)} names, but {len(values)} values.")
    registry = _registry(op, 2)
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


def _elapsed(op: TorchOperator, ends: bool) -> int:
    """Return the nanoseconds since the timer in input 0 was started; stop it, if it `ends`.

    Its counter is then given the time. Raises EnforceNotMet: it is stopped.
    """
    timer = op.Input(0, Timer)
    require(timer.began is not None, f"{op._definition.type} is called on a stopped timer.")
    elapsed = time.perf_counter_ns() - (timer.began or 0)
    if ends:
        timer.began = None
        timer.counter.put(elapsed)
    return elapsed


@procedure("TimerEnd", inputs="1", outputs="0")
def timer_end(op: TorchOperator) -> None:
    """Stop a timer: its time is added to the counters <name>/time_ns/sum and .../count."""
    _elapsed(op, True)


@procedure("TimerGet", inputs="1", outputs="1")
def timer_get(op: TorchOperator) -> None:
    """The time since a timer was started, in nanoseconds, int64."""
    op.put_value(0, _elapsed(op, False), c10.int64)


@procedure("TimerGetAndEnd", inputs="1", outputs="1")
def timer_get_and_end(op: TorchOperator) -> None:
    """TimerGet, whose output has one dimension here, then TimerEnd."""
    out = op.Output(0, [1], c10.int64)
    out.mutable_data()[:] = _elapsed(op, True)


@procedure("WallClockTime", inputs="0", outputs="1", gradient="undefined")
def wall_clock_time(op: TorchOperator) -> None:
    """Nanoseconds since 1970, int64."""
    op.put_value(0, time.time_ns(), c10.int64)


_FLOATING = (c10.float32, c10.float16, c10.float64)
_PUT_TYPES = (*_FLOATING, c10.uint8, c10.int8, c10.uint16, c10.int16, c10.int32, c10.int64)


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
        self._stat = Stat(name, "stat_value", _PARTS[self._definition.type])
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
