# SPDX-License-Identifier: Apache-2.0
"""To Int8 tensors and back: Int8Quantize, Int8Dequantize, and fills."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.quantized.int8_operator import Int8Operator, Quantized


@register_operator("Int8Quantize", inputs="1-2", outputs="1")
class Int8Quantize(Int8Operator):
    """The float32 X in bytes."""

    def computed(self) -> Tensor:
        x = self.x(0, (c10.float32,))
        return (x / self.scale).round_().add_(self.zero_point).clamp_(0, 255).to(torch.uint8)


@register_operator("Int8Dequantize", inputs="1", outputs="1")
class Int8Dequantize(Int8Operator):
    """The real values as float32."""

    def computed(self) -> None:
        x = self.quantized(0)
        self.put(0, (x.bytes.int() - x.zero_point).float() * x.scale)


class _Given(Int8Operator):
    """Values that are given as arguments."""

    def _shaped(self, made: Tensor) -> Tensor:
        shape = self.GetRepeatedArgument("shape", (0,))
        count = prod(shape)
        require(made.numel() == count, "there are as many values as the shape says", shape, made)
        return made.view(shape)


@register_operator("Int8GivenTensorFill", inputs="0", outputs="1")
class Int8GivenTensorFill(_Given):
    """The bytes `values`, a string, in the shape `shape`."""

    def computed(self) -> Tensor:
        values = self.GetSingleArgument("values", b"")
        values = values.encode() if isinstance(values, str) else values
        made = (
            torch.frombuffer(bytearray(values), dtype=torch.uint8)
            if values
            else torch.empty(0, dtype=torch.uint8, device="cpu")
        )
        return self._shaped(made)


@register_operator("Int8GivenIntTensorFill", inputs="0", outputs="1")
class Int8GivenIntTensorFill(_Given):
    """The int32 `values`, such as biases, in the shape `shape`."""

    def computed(self) -> None:
        values = self.GetRepeatedArgument("values", (0,))
        made = self._shaped(torch.tensor(values, dtype=torch.int32, device="cpu"))
        self.put_quantized(0, Quantized(made, self.scale, self.zero_point))
