# SPDX-License-Identifier: Apache-2.0
"""Int8 tensors element by element: from and to numbers, activations, sums; and elements moved.

A table of 256 has the results of an activation. Where elements are moved, scale and zero point
stay, as the arguments must say. Follows QNNPACK, as Caffe2 of PyTorch 1.8.1 has it.
"""

from __future__ import annotations

import math
from math import prod

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import image_order, require, single
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


class _Move(Int8Operator):
    """An operator that moves the elements of its input."""

    def computed(self) -> None:
        x = self.quantized(0)
        self.require_same(x)
        made = self.moved(x.bytes).contiguous()
        made = made.clone() if made.data_ptr() == x.bytes.data_ptr() else made
        self.put_quantized(0, Quantized(made, x.scale, x.zero_point))

    def moved(self, x: Tensor) -> Tensor:
        """Return the bytes of the output, which may be a view."""
        raise NotImplementedError


@register_operator("Int8Flatten", inputs="1", outputs="1")
class Int8Flatten(_Move):
    """A matrix: the dimensions before `axis` (1), and the others."""

    def moved(self, x: Tensor) -> Tensor:
        axis = self.GetSingleArgument("axis", 1)
        require(0 <= axis <= x.dim(), "axis is one of the dimensions", axis, x)
        return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@register_operator("Int8Transpose", inputs="1", outputs="1")
class Int8Transpose(_Move):
    """The dimensions in the order `axes`, or reversed."""

    def moved(self, x: Tensor) -> Tensor:
        axes = self.GetRepeatedArgument("axes", ()) or list(reversed(range(x.dim())))
        require(sorted(axes) == list(range(x.dim())), "axes are those of X", axes, x)
        return x.permute(axes)


@register_operator("Int8Slice", inputs="1-3", outputs="1")
class Int8Slice(_Move):
    """From `starts` to below `ends` in one dimension; a negative end counts from behind, from 1."""

    def moved(self, x: Tensor) -> Tensor:
        starts, ends = self._bounds()
        require(len(starts) == len(ends) <= x.dim(), "there are starts and ends", starts, ends, x)
        found = None
        for axis, (start, end) in enumerate(zip(starts, ends, strict=True)):
            size = x.shape[axis]
            start = start + size + 1 if start < 0 else start
            end = end + size + 1 if end < 0 else end
            if start > 0 or end < size:
                require(found is None, "one dimension is sliced", starts, ends)
                require(0 <= start <= end <= size, "the slice is in X", start, end, x)
                found = x.narrow(axis, start, end - start)
        return x if found is None else found

    def _bounds(self) -> tuple[list[int], list[int]]:
        if self.InputSize() > 1:
            return self.integers(1), self.integers(2)
        return self.GetRepeatedArgument("starts", (0,)), self.GetRepeatedArgument("ends", (0,))


@register_operator("Int8ChannelShuffle", inputs="1", outputs="1")
class Int8ChannelShuffle(_Move):
    """The channels, the last dimension, of `group` groups by turns."""

    def moved(self, x: Tensor) -> Tensor:
        require(self.HasArgument("kernel"), "there is a kernel, as in all operators on images")
        order = image_order(self.GetSingleArgument("order", "NCHW"))
        require(order == "NHWC" and x.dim() == 4, "images have the order NHWC", order, x)
        group, channels = self.GetSingleArgument("group", 1), x.shape[-1]
        require(group > 0 and channels % group == 0, "group divides the channels", group, x)
        return x.reshape(*x.shape[:-1], group, channels // group).transpose(-1, -2).reshape(x.shape)


@register_operator("Int8ResizeNearest", inputs="1", outputs="1")
class Int8ResizeNearest(_Move):
    """Images (N, H, W, C) times `height_scale` and `width_scale` (1)."""

    def moved(self, x: Tensor) -> Tensor:
        require(x.dim() == 4, "images have four dimensions", x)
        for axis, name in ((1, "height_scale"), (2, "width_scale")):
            scale, size = single(self.GetSingleArgument(name, 1.0)), x.shape[axis]
            places = torch.arange(int(single(size * scale)), dtype=torch.float32, device="cpu")
            x = x.index_select(axis, (places / scale).long().clamp(max=size - 1))
        return x


@register_operator("Int8Reshape", inputs="1-2", outputs="2", inplace="0>0")
class Int8Reshape(_Move):
    """The shape of the argument `shape` or input 1; output 1: the former shape, int64."""

    def moved(self, x: Tensor) -> Tensor:
        by_input = self.InputSize() > 1
        require(by_input or self.HasArgument("shape"), "there is a shape")
        shape = self.integers(1) if by_input else self.GetRepeatedArgument("shape", (0,))
        shape = [x.shape[i] if size == 0 else size for i, size in enumerate(shape)]
        require(shape.count(-1) <= 1, "one size is left open", shape)
        known = -math.prod(shape) if -1 in shape else math.prod(shape)
        open_size = x.numel() // max(known, 1)
        shape = [open_size if size == -1 else size for size in shape]
        require(math.prod(shape) == x.numel(), "the shape has the elements of X", shape, x)
        before = torch.tensor(x.shape, dtype=torch.int64, device="cpu")
        self.put(1, before)
        return x.view(shape)


@register_operator("Int8Concat", inputs="1-*", outputs="1-2")
class Int8Concat(Int8Operator):
    """The inputs one after the other along `axis`, by default that of the channels of `order`.

    Without both it is the first dimension. The scale is that of the first input.
    """

    def computed(self) -> Tensor:
        inputs = [self.quantized(i) for i in range(self.InputSize())]
        self.require_same(inputs[0])
        first = inputs[0].bytes
        axis = 0
        if self.HasArgument("axis"):
            axis = self.GetSingleArgument("axis", 0)
        elif self.HasArgument("order"):
            axis = 3 if image_order(self.GetSingleArgument("order", "")) == "NHWC" else 1
        require(0 <= axis < first.dim(), "the axis is one of the dimensions", axis, first)
        sizes = [one.bytes.shape[axis] for one in inputs]
        for one in inputs:
            rest = [*one.bytes.shape[:axis], *one.bytes.shape[axis + 1 :]]
            own = [*first.shape[:axis], *first.shape[axis + 1 :]]
            require(rest == own, "the other dimensions are equal", one.bytes, first)
        if self.OutputSize() > 1:
            self.put(1, torch.tensor(sizes, dtype=torch.int32, device="cpu"))
        return torch.cat([one.bytes for one in inputs], axis)
