# SPDX-License-Identifier: Apache-2.0
"""Convolutions, matrix products and pooling of Int8 tensors, images in the order NHWC.

Follows caffe2/operators/quantized, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import image_order, require, single
from bridge.caffe2.operators.base.windows import Window, Windows
from bridge.caffe2.operators.boxes.roi_align import RoIRules, roi_align
from bridge.caffe2.operators.images.convolution import TransposedWindows
from bridge.caffe2.operators.quantized.int8_operator import (
    Int8Operator,
    Quantized,
    clamped,
    float32_bits,
    floats_of,
    multiplier_of,
    rescaled,
    wrapped,
)


def _channels_first(x: Tensor) -> Tensor:
    require(x.dim() == 4, "images have four dimensions", x)
    return x.permute(0, 3, 1, 2)


def _channels_last(y: Tensor) -> Tensor:
    return y.permute(0, 2, 3, 1).contiguous()


def _exact(x: Quantized, w: Quantized, count: int, output: int = 0) -> tuple[Tensor, Tensor]:
    """Return operands without zero points, whose sums of `count` products are exact.

    output: the dimension of the filter that has an entry for each sum. They are float32 if no sum
    can reach 2**24, by the largest bytes there may be, or else by those of the filter.
    """
    largest = max(x.zero_point, 255 - x.zero_point)
    other = max(w.zero_point, 255 - w.zero_point)
    right = floats_of(w.bytes, w.zero_point)
    fits = largest * other * count < 2**24
    if not fits:
        sums = right.abs().movedim(output, 0).flatten(1).sum(1)
        fits = not sums.numel() or float(sums.max()) * largest < 2**24
    if fits:
        return floats_of(x.bytes, x.zero_point), right
    return x.bytes.double() - x.zero_point, right.double()


class _Layer(Int8Operator):
    """Sums of products of X and a filter, with biases, brought to the scale of the output."""

    def finished(self, sums: Tensor, x: Quantized, w: Quantized, bias: Tensor) -> Tensor:
        """Return sums, whose last dimension is that of the biases, as bytes."""
        require(bias.shape == sums.shape[-1:], "there is one bias per output", bias, sums)
        by = multiplier_of(x.scale, w.scale, self.scale)
        lowest = self.wrapped_zero_point if self.lowest else 0
        return rescaled(sums, bias, by, self.wrapped_zero_point, lowest)

    def operands(self) -> tuple[Quantized, Quantized, Tensor]:
        """Return X, the filter and the biases."""
        require(self.InputSize() == 3, "there are X, a filter and biases", self.InputSize())
        x, w = wrapped(self.quantized(0)), wrapped(self.quantized(1))
        return x, w, self.quantized(2, c10.int32).bytes


class _WindowsOnce:
    """The windows of a definition, read from its arguments at the first run.

    A module makes its operators anew for each call, and reading takes 14 microseconds.
    """

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._latest: tuple[Any, Any] = (None, None)

    @cached_property
    def _windows(self) -> Windows:
        return Windows(self._arguments)

    def on(self, sizes: torch.Size) -> Window:
        """Return the windows on images of this height and width."""
        before, window = self._latest
        if before != sizes:
            window = self._windows.on(sizes)
            self._latest = (sizes, window)
        return window


class _ImageOperator(_Layer):
    @classmethod
    def check(cls, definition: Definition) -> Any:
        order = definition.arguments.get("order", {}).get("s", b"NCHW")
        order = order.decode() if isinstance(order, bytes) else order
        require(image_order(order) == "NHWC", f"{definition.type} has order='NHWC'", order)
        super().check(definition)  # none of them is in place
        return _WindowsOnce(Arguments(definition))

    def window(self, sizes: torch.Size) -> Window:
        """Return the windows on images of this height and width."""
        return self._definition.checked.on(sizes)


@register_operator("Int8Conv", inputs="2-3", outputs="1")
@register_operator("Int8ConvRelu", inputs="2-3", outputs="1")
class Int8Conv(_ImageOperator):
    """X (N, H, W, C), filter (M, kernel_h, kernel_w, C / group), biases (M), of int32."""

    def computed(self) -> Tensor:
        x, w, bias = self.operands()
        sizes, of_filter, group = x.bytes.shape, w.bytes.shape, self.group
        fits = len(sizes) == len(of_filter) == 4
        require(fits, "images have four dimensions", x.bytes, w.bytes)
        outputs, *kernel, channels = of_filter
        fits = sizes[3] == channels * group and outputs % group == 0
        require(fits, "the filter has the channels of X, over group", x.bytes, w.bytes, group)
        window = self.window(sizes[1:3])
        require(list(window.kernel) == kernel, "the filter has the size of the kernel", w.bytes)
        left, right = _exact(x, w, math.prod(kernel) * channels)
        if group == 1 and window.is_pointwise:
            return self.finished(left @ right.flatten(1).t(), x, w, bias)
        left = _channels_first(left)
        if not window.is_even:
            left = window.padded(left)
        y = torch.conv2d(
            left,
            _channels_first(right),
            *(None, window.stride, window.head if window.is_even else 0, window.dilation, group),
        )
        return self.finished(_channels_last(y), x, w, bias)

    @cached_property
    def group(self) -> int:
        """The argument `group` (1)."""
        return int(self.GetSingleArgument("group", 1))


@register_operator("Int8ConvTranspose", inputs="2-3", outputs="1")
class Int8ConvTranspose(_ImageOperator):
    """X (N, H, W, C), filter (C, kernel_h, kernel_w, M), biases (M), of int32."""

    def computed(self) -> Tensor:
        x, w, bias = self.operands()
        windows = TransposedWindows(self.arguments)
        image, kernel = _channels_first(x.bytes), _channels_first(w.bytes)
        require(
            image.shape[1] == kernel.shape[0] and list(kernel.shape[2:]) == list(windows.kernel),
            "the filter has the channels of X, and the size of the kernel",
            *(x.bytes, w.bytes),
        )
        height, width = windows.sizes(image)
        left, right = _exact(x, w, math.prod(kernel.shape), -1)
        y = torch.conv_transpose2d(
            _channels_first(left), _channels_first(right), None, windows.stride, 0, windows.adj
        )
        top, start = windows.head
        y = y[:, :, top : top + height, start : start + width]
        return self.finished(_channels_last(y), x, w, bias)


@register_operator("Int8FC", inputs="3-4", outputs="1-4")
class Int8FC(_Layer):
    """X (rows, depth), its dimensions from 1 on being one, weights (outputs, depth), biases."""

    def computed(self) -> Tensor:
        x, w, bias = self.operands()
        rows = x.bytes.flatten(1)
        fits = w.bytes.dim() == 2 and rows.shape[1] == w.bytes.shape[1]
        require(fits, "X has as many elements per row as the weights", x.bytes, w.bytes)
        left, right = _exact(x, w, rows.shape[1])
        return self.finished(left.flatten(1) @ right.t(), x, w, bias)


@register_operator("Int8MaxPool", inputs="1", outputs="1")
@register_operator("Int8MaxPoolRelu", inputs="1", outputs="1")
class Int8MaxPool(_ImageOperator):
    """The maximum of each window."""

    def computed(self) -> Tensor:
        x = self.quantized(0)
        self.require_same(x)
        image = _channels_first(x.bytes).float()
        window = self.window(image.shape[2:])
        y = torch.max_pool2d(
            window.padded(image), list(window.kernel), list(window.stride), 0, list(window.dilation)
        )
        return _channels_last(y).clamp(min=self.lowest).to(torch.uint8)


@register_operator("Int8AveragePool", inputs="1", outputs="1")
@register_operator("Int8AveragePoolRelu", inputs="1", outputs="1")
class Int8AveragePool(_ImageOperator):
    """The mean of each window; the padding counts as zeros."""

    def computed(self) -> Tensor:
        x = self.quantized(0)
        image = _channels_first(floats_of(x.bytes, x.zero_point))
        window = self.window(image.shape[2:])
        count = math.prod(window.kernel)
        sums = torch._C._nn.avg_pool2d(
            window.padded(image), list(window.kernel), list(window.stride), divisor_override=1
        )
        scale = single(single(x.scale) / single(self.scale * count))
        bits = float32_bits(scale)
        multiplier, shift = (bits & 0x007FFFFF) | 0x00800000, 127 + 23 - (bits >> 23)
        products = sums.abs().long() * multiplier
        means = (products + (1 << (shift - 1))) >> shift
        means = torch.where(sums < 0, -means, means)
        return clamped(_channels_last(means), self.zero_point, self.lowest)


@register_operator("Int8RoIAlign", inputs="2", outputs="1")
class Int8RoIAlign(_ImageOperator):
    """RoIAlign of X (N, H, W, C) and regions of float32, quantized anew."""

    def computed(self) -> Tensor:
        x, rois = self.quantized(0), self.x(1, (c10.float32,))
        image = _channels_first(x.bytes).float() - x.zero_point
        rules = RoIRules(self.arguments)
        rules.order.is_first = True  # as the image now is
        y = roi_align(image.contiguous(), rois, rules=rules) * (x.scale / self.scale)
        return clamped(_channels_last(y).round().long(), self.zero_point, 0)
