# SPDX-License-Identifier: Apache-2.0
"""Operators on counters."""

from __future__ import annotations

from collections.abc import Callable

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.caffe2.blobs.objects import Counter
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator


@register_operator("CreateCounter", ("cpu", "cuda"), inputs="0", outputs="1", gradient="undefined")
class CreateCounter(TorchOperator):
    """Create a counter at `init_count` (0)."""

    def RunOnDevice(self) -> None:
        self.OutputBlob(0).Reset(Counter(self.count()))

    def count(self) -> int:
        """Return the argument `init_count`."""
        count: int = self.GetSingleArgument("init_count", 0)
        require(count >= 0, f"init_count must not be negative: {count}.")
        return count


@register_operator("ResetCounter", ("cpu", "cuda"), inputs="1", outputs="0-1", gradient="undefined")
class ResetCounter(CreateCounter):
    """Set a counter to `init_count` (0); optional output 0: its former value."""

    def RunOnDevice(self) -> None:
        before = self.Input(0, Counter).reset(self.count())
        if self.OutputSize():
            self.put_value(0, before, c10.int64)


# How the output is computed, and its type.
_RESULTS: dict[str, tuple[Callable[[Counter], int], TypeMeta]] = {
    "CheckCounterDone": (lambda counter: counter.count <= 0, c10.bool),
    "CountDown": (lambda counter: counter.add(-1) <= 0, c10.bool),
    "CountUp": (lambda counter: counter.add(1), c10.int64),
    "RetrieveCount": (lambda counter: counter.count, c10.int64),
}


@register_operator("CheckCounterDone", ("cpu", "cuda"), inputs="1", outputs="1")
@register_operator("CountDown", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
@register_operator("CountUp", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
@register_operator("RetrieveCount", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
class ReadCounter(TorchOperator):
    """RetrieveCount: the value of a counter; CheckCounterDone: whether it is 0 or less.

    CountUp increments the counter, CountDown decrements it; both then are of its former value.
    """

    def RunOnDevice(self) -> None:
        compute, dtype = _RESULTS[self._definition.type]
        self.put_value(0, compute(self.Input(0, Counter)), dtype)
