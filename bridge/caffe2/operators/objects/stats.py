# SPDX-License-Identifier: Apache-2.0
"""Operators on registries of counters, and on timers.

Follows caffe2/operators/stats_ops.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import INT64, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.objects.stat_registry import StatRegistry, Timer, registered_stats


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
