# SPDX-License-Identifier: Apache-2.0
"""Operators on counters."""

from __future__ import annotations

from bridge import c10
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


@register_operator("CountDown", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
class CountDown(TorchOperator):
    """Decrement a counter; the output is whether it was 0 or less before."""

    def RunOnDevice(self) -> None:
        self.put_value(0, self.Input(0, Counter).add(-1) <= 0, c10.bool)


@register_operator("CountUp", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
class CountUp(TorchOperator):
    """Increment a counter; the output is its former value."""

    def RunOnDevice(self) -> None:
        self.put_value(0, self.Input(0, Counter).add(1), c10.int64)


@register_operator("CheckCounterDone", ("cpu", "cuda"), inputs="1", outputs="1")
class CheckCounterDone(TorchOperator):
    """Whether a counter is 0 or less."""

    def RunOnDevice(self) -> None:
        self.put_value(0, self.Input(0, Counter).count <= 0, c10.bool)


@register_operator("RetrieveCount", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
class RetrieveCount(TorchOperator):
    """The value of a counter."""

    def RunOnDevice(self) -> None:
        self.put_value(0, self.Input(0, Counter).count, c10.int64)
