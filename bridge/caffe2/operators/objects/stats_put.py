# SPDX-License-Identifier: Apache-2.0
"""Operators that add values to the counters of the process.

Follows caffe2/operators/stats_put_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from typing import Any

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.objects.stat_registry import (
    INT64_MAX,
    INT64_MIN,
    AverageStat,
    Stat,
    StdDevStat,
)

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
