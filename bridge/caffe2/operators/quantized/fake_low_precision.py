# SPDX-License-Identifier: Apache-2.0
"""FC of engines that round their operands to a smaller type, and compute in float32.

Follows caffe2/quantization/server/fully_connected_fake_lowp_op.h, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.definitions.operator_types import classes_of
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.torch_operator import TorchOperator


def _half(x: Tensor) -> Tensor:
    """Return float32 rounded to float16."""
    return x.half().float()


def _cut(x: Tensor, bits: int, rounds: bool = False) -> Tensor:
    """Return float32 without the last `bits` bits; rounded, halves away from zero, or cut off."""
    found = x.contiguous().view(torch.int32)
    if rounds:
        found = found + (1 << (bits - 1))
    return (found >> bits << bits).view(torch.float32)


_ENGINES: dict[str, Callable[[Tensor], Tensor]] = {
    "FAKE_FP16": _half,
    "FAKE_BFP_14": partial(_cut, bits=18),
    "FAKE_BFP_16": partial(_cut, bits=16),
    "FAKE_BFP_16_ROUND": partial(_cut, bits=16, rounds=True),
    "FAKE_BFP_24": partial(_cut, bits=8),
}


class Rounded(TorchOperator):
    """The plain operator of operands that are rounded as the engine says."""

    @classmethod
    def check(cls, definition: Definition) -> Any:
        """Return the plain operator's function with the arguments of the definition."""
        plain: Any = classes_of(definition.type)
        return plain["cpu"]._declaration.bind(definition)

    def RunOnDevice(self) -> None:
        """Round, and compute."""
        bound = self._definition.checked
        rounded = _ENGINES[self._definition.engine]
        operands = [rounded(self.x(i, (c10.float32,))) for i in range(self.InputSize())]
        results = bound.function(*operands, **bound.arguments)
        for o, result in enumerate(results if isinstance(results, tuple) else (results,)):
            if o < self.OutputSize():
                self.put(o, result)

    @property
    def _in_place(self) -> dict[int, int]:
        return self._definition.checked.in_place


for _engine in _ENGINES:
    for _name in ("FC", "FCGradient"):
        register_operator(_name, engine=_engine)(Rounded)
