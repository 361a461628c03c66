# SPDX-License-Identifier: Apache-2.0
"""Int8 tensors element by element: from and to numbers, activations, sums.

A table of 256 has the results of an activation. Follows QNNPACK, as Caffe2 of PyTorch 1.8.1 has it.
"""

from __future__ import annotations

import math
from math import prod

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require, single
from bridge.caffe2.operators.quantized import byte_kernels
from bridge.caffe2.operators.quantized.int8_operator import (
    Int8Operator,
    Quantized,
    clamped,
    float32_bits,
    require_byte,
    shifted,
    wrapped,
)


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


def _values(x: Quantized) -> Tensor:
    """Return the 256 numbers that bytes may stand for, over the scale, as float32."""
    return torch.arange(256, dtype=torch.float32, device="cpu") - x.zero_point


def _looked_up(x: Quantized, table: Tensor) -> Tensor:
    """Return the bytes of a table of 256 float32 numbers, rounded."""
    return table.round().clamp(0, 255).to(torch.uint8)[x.bytes.long()]


@register_operator("Int8Relu", inputs="1", outputs="1", inplace="0>0")
class Int8Relu(Int8Operator):
    """max(X, 0)."""

    def computed(self) -> Tensor:
        x = self.quantized(0)
        self.require_same(x)
        require_byte(x)
        return x.bytes.clamp(min=x.zero_point)


@register_operator("Int8LeakyRelu", inputs="1", outputs="1", inplace="0>0")
class Int8LeakyRelu(Int8Operator):
    """X where it is positive, else X times `alpha` (0.01)."""

    def computed(self) -> Tensor:
        x = self.quantized(0)
        require_byte(x)
        values = _values(x) * single(x.scale / self.scale)
        alpha = single(self.GetSingleArgument("alpha", 0.01))
        require(0 < alpha < 1, "alpha is greater than 0 and less than 1", alpha)
        values = torch.where(values < 0, values * alpha, values)
        return _looked_up(x, values.round() + self.zero_point)


@register_operator("Int8Sigmoid", inputs="1", outputs="1")
class Int8Sigmoid(Int8Operator):
    """1 / (1 + exp(-X)), in steps of 1/256."""

    def computed(self) -> Tensor:
        x = wrapped(self.quantized(0))
        self.require_probabilities()
        return _looked_up(x, 256 / (1 + torch.exp(-(_values(x) * x.scale))))


@register_operator("Int8Softmax", inputs="1", outputs="1")
class Int8Softmax(Int8Operator):
    """The softmax over the dimensions from 1 on, whatever `axis` says, in steps of 1/256."""

    def computed(self) -> Tensor:
        x = self.quantized(0)
        self.require_probabilities()
        sizes = x.bytes.shape
        require(len(sizes) > 0, "X has at least one dimension", x.bytes)
        rows = x.bytes.reshape(sizes[0], math.prod(sizes[1:])).long()
        if not rows.numel():
            return x.bytes.clone()
        factor = min((2**32 - 1) / rows.shape[1], 8388607.0)
        steps = torch.arange(256, dtype=torch.float64, device="cpu") - 255
        table = (factor * torch.exp(steps * x.scale)).round().long()
        parts = table[rows + 255 - rows.amax(1, keepdim=True)]
        total = parts.sum(1, keepdim=True)
        found = ((parts << 8) + (total >> 1)) // total
        return found.clamp(max=255).to(torch.uint8).view(sizes)


@register_operator("Int8Add", inputs="2", outputs="1", inplace="0>0,1>0")
@register_operator("Int8AddRelu", inputs="2", outputs="1", inplace="0>0,1>0")
@register_operator("Int8Sum", inputs="1-*", outputs="1", inplace="0>0,1>0")
@register_operator("Int8SumRelu", inputs="1-*", outputs="1", inplace="0>0,1>0")
class Int8Add(Int8Operator):
    """A + B; with Relu, max(A + B, 0)."""

    def computed(self) -> Tensor:
        require(self.InputSize() == 2, "there are two inputs", self.InputSize())
        a, b = self.quantized(0), self.quantized(1)
        require(a.bytes.shape == b.bytes.shape, "A and B have the same shape", a.bytes, b.bytes)
        scales = [single(single(one.scale) / self.scale) for one in (a, b)]
        require(
            all(2.0**-14 <= scale < 2.0**8 for scale in scales),
            "the scales of A and B over that of the output are from 2**-14 to below 2**8",
            *scales,
        )
        # The greater scale has 22 bits.
        shift = 21 - ((float32_bits(max(scales)) >> 23) - 127)
        by_a, by_b = (round(math.ldexp(scale, shift)) for scale in scales)
        sums = -(by_a * a.zero_point + by_b * b.zero_point)
        if shift > 30 or not all(0 <= one.zero_point <= 255 for one in (a, b)):
            found = a.bytes.long() * by_a + b.bytes.long() * by_b + sums
            return clamped(shifted(found, shift), self.zero_point, self.lowest)
        pair = a.bytes.contiguous(), b.bytes.contiguous()
        made = torch.empty_like(pair[0])
        numbers = (made.numel(), by_a, by_b, sums, shift, self.zero_point, self.lowest)
        byte_kernels.add_scaled(made, *pair, *numbers)
        return made
