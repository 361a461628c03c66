# SPDX-License-Identifier: Apache-2.0
"""Int8 tensors whose elements are moved; scale and zero point stay, as the arguments must say."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import image_order, require, single
from bridge.caffe2.operators.quantized.int8_operator import Int8Operator, Quantized


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
