# SPDX-License-Identifier: Apache-2.0
"""Windows on images, by kernel, stride, dilation and padding.

`Windows` has the arguments of a definition, `Window` its windows on an image of given
sizes. Images are (N, C, ...) here, whatever the order in memory.
Follows ConvPoolOpBase, caffe2/operators/conv_pool_op_base.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Function, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import add_pattern
from bridge.caffe2.operators.base.channels import Order
from bridge.caffe2.operators.base.checks import require

NOTSET, VALID, SAME, CAFFE_LEGACY_POOLING = range(4)  # caffe2/proto/caffe2_legacy.proto


def by_rank(
    name: str, suffix: str = "", *, gradient: Any = None, **declared: Any
) -> Callable[[Function], Function]:
    """Return a decorator that declares operators `name`, and with 1D, 2D and 3D after it.

    `suffix` follows that. In a pattern `gradient` ``$`` stands for the type, and the others are for
    `operator`.
    """

    def declare(function: Function) -> Function:
        for rank in ("", "1D", "2D", "3D"):
            own = f"{name}{rank}{suffix}"
            operator(own, gradient=gradient, **declared)(function)
        return function

    return declare


def convolution_gradient(maker: GradientMaker) -> None:
    """Add the gradient of a convolution, whose bias is optional."""
    no_bias = len(maker.op.input) == 2
    add_pattern(
        "$Gradient{no_bias=1} i0 i1 g0 > 1 0" if no_bias else "$Gradient i0 i1 g0 > 1 2 0", maker
    )


class Window:
    """Windows on an image of given sizes.

    `kernel`, `stride`, `dilation`, `head` and `tail` padding and `sizes`, the number of windows,
    are lists by spatial dimension. `is_even`: head and tail padding are equal and not negative, as
    torch supports it. `is_pointwise`: the windows are the elements.
    """

    __slots__ = ("dilation", "head", "is_even", "is_pointwise", "kernel", "sizes", "stride", "tail")

    def __init__(
        self,
        kernel: Sequence[int],
        stride: Sequence[int],
        dilation: Sequence[int],
        head: Sequence[int],
        tail: Sequence[int],
        sizes: Sequence[int],
    ) -> None:
        self.kernel, self.stride, self.dilation = kernel, stride, dilation
        self.head, self.tail, self.sizes = head, tail, sizes
        self.is_even = list(head) == list(tail) and all(pad >= 0 for pad in head)
        self.is_pointwise = {*kernel, *stride} == {1} and not any((*head, *tail))

    def padded(self, x: Tensor, value: float = 0.0) -> Tensor:
        """Return a padded copy of `x`, or `x` itself if there is no padding."""
        pads = [pad for pair in zip(self.head, self.tail, strict=True) for pad in reversed(pair)]
        pads.reverse()
        return torch.constant_pad_nd(x, pads, value) if any(pads) else x

    def unpadded(self, x: Tensor) -> Tensor:
        """Return a view of `x` without the padding, or `x` itself if there is none."""
        for i, (head, tail) in enumerate(zip(self.head, self.tail, strict=True), 2):
            if head or tail:
                x = x.narrow(i, head, x.shape[i] - head - tail)
        return x


class Windows:
    """The windows that the arguments of an operator describe.

    Arguments: `kernel`, `kernel_h` and `kernel_w`, or `kernels`; `stride` and `dilation` (1)
    likewise; `pad` (0), or by side `pad_t`, `pad_l`, `pad_b`, `pad_r`, or `pads`, all heads before
    the tails; `legacy_pad` (0: explicit pads, 1 VALID: no padding, 2 SAME: size / stride windows,
    rounded up, 3: as pooling in Caffe); `global_pooling` (0): one window, the whole image; `order`.
    """

    takes = (
        "int kernel, int kernel_h, int kernel_w, int[] kernels, int stride, "
        "int stride_h, int stride_w, int[] strides, int dilation, int dilation_h, "
        "int dilation_w, int[] dilations, int pad, int pad_t, int pad_l, int pad_b, "
        "int pad_r, int[] pads, int legacy_pad, bool global_pooling, str order"
    )

    # Whether the arguments may describe more dimensions than the image has: `kernel` sets two.
    allows_extra_dimensions = False

    def __init__(self, arguments: Arguments) -> None:
        self.order = Order(arguments)
        self.legacy = arguments.single("legacy_pad", NOTSET)
        self.is_global = bool(arguments.single("global_pooling", 0))
        self.kernel = pair(arguments, "kernel") or [0, 0]
        rank = len(self.kernel)
        self.stride = pair(arguments, "stride") or [1] * rank
        self.dilation = pair(arguments, "dilation") or [1] * rank
        self.pads = _pads(arguments) or [0] * 2 * rank
        every = (*self.kernel, *self.stride, *self.dilation, *self.pads)
        fits = min(every, default=0) >= -(2**31) and max(every, default=0) < 2**31
        require(fits, "kernel, stride, dilation and pads fit an int of 32 bits", *every)
        implicit = self.legacy in (VALID, SAME)
        fits = not (implicit and any(map(arguments.has, ("pads", "pad", "pad_t"))))
        require(fits, "legacy_pad VALID and SAME are used without pads")
        require(len(self.stride) == rank, "there are as many strides as kernel sizes", self.stride)
        require(
            len(self.dilation) == rank, "there are as many dilations as kernel sizes", self.dilation
        )
        require(
            implicit or len(self.pads) == 2 * rank, "there are two pads per kernel size", self.pads
        )
        if self.is_global:
            plain = not any(self.pads) and {*self.stride, *self.dilation} <= {1}
            require(plain, "global_pooling is used without pad, dilation and stride")
        steps = self.kernel, self.stride, self.dilation
        fits = all(min(one) >= 0 for one in steps)
        require(fits, "kernel, stride and dilation are not negative", *steps)

    def on(self, sizes: Sequence[int]) -> Window:
        """Return the windows of an image of these spatial sizes.

        Raises EnforceNotMet: they do not fit.
        """
        rank = len(sizes)
        if self.is_global:
            zeros, ones = [0] * rank, [1] * rank
            return Window(list(sizes), ones, ones, zeros, zeros, ones)
        given = len(self.kernel)
        require(
            (rank == given or (self.allows_extra_dimensions and rank < given))
            and min(self.kernel) > 0
            and min(self.stride) > 0,
            "there are a kernel size and a stride for each spatial dimension",
            self.kernel,
            self.stride,
            list(sizes),
        )
        heads, tails, outs = [], [], []
        for i, size in enumerate(sizes):
            head, tail = (0, 0) if len(self.pads) < 2 * given else self.pads[i::given]
            head, tail, out = self._along_dimension(
                size, self.kernel[i], self.stride[i], self.dilation[i], head, tail
            )
            heads.append(head)
            tails.append(tail)
            outs.append(out)
        steps = self.kernel[:rank], self.stride[:rank], self.dilation[:rank]
        return Window(*steps, heads, tails, outs)

    def _along_dimension(
        self, size: int, kernel: int, stride: int, dilation: int, head: int, tail: int
    ) -> tuple[int, int, int]:
        """Return head and tail padding and the number of windows in a dimension of `size`."""
        reach = dilation * (kernel - 1) + 1
        if self.legacy == VALID:
            # Rounded towards zero as in C: a kernel slightly larger than the image has one window.
            out = int((size - reach) / stride) + 1
            return 0, max((out - 1) * stride + reach - size, 0), out
        if self.legacy == SAME:
            require(dilation == 1, "legacy_pad SAME is used without dilation", dilation)
            needed = (-(-size // stride) - 1) * stride + kernel - size
            head = int(needed / 2)
            return head, needed - head, int((size + needed - reach) / stride) + 1
        if self.legacy == CAFFE_LEGACY_POOLING:
            require(head >= 0, "pads are not negative", head)
            span = (size + head * 2 - kernel) / stride + 1
            out, standard = math.ceil(span), int(span)
            if head > 0 and (out - 1) * stride >= size + head:
                out -= 1
            tail = head + stride * (out - standard)
            require(out >= standard, "the last window begins in the image", size, head)
            # Caffe counts windows as if there were no dilation, which may be too many.
            actual = (size + head + tail - reach) // stride + 1
            require(dilation == 1 or out == actual, "dilated windows fit", out, actual)
            return head, tail, out
        require(size + head + tail >= reach, "the kernel fits into the padded image", size, reach)
        return head, tail, (size + head + tail - reach) // stride + 1


def pair(arguments: Arguments, name: str) -> list[int]:
    """Return an argument given once, for height and width, or for each dimension; else []."""
    values = [int(value) for value in arguments.repeated(f"{name}s")]
    if arguments.has(name):
        # Like std::vector::resize(2, value): existing values stay.
        return (values + [int(arguments.single(name, 0))] * 2)[:2]
    if arguments.has(f"{name}_h") and arguments.has(f"{name}_w"):
        values += [int(arguments.single(f"{name}_{side}", 0)) for side in "hw"]
    return values


def _pads(arguments: Arguments) -> list[int]:
    values = [int(value) for value in arguments.repeated("pads")]
    if arguments.has("pad"):
        return (values + [int(arguments.single("pad", 0))] * 4)[:4]
    sides = [f"pad_{side}" for side in "tlbr"]
    if all(map(arguments.has, sides)):
        values += [int(arguments.single(side, 0)) for side in sides]
    return values


def windows_of(x: Tensor, window: Window) -> Tensor:
    """Return a view (N, C, windows..., kernel...) of the padded `x`, without dilation."""
    for i, (kernel, stride) in enumerate(zip(window.kernel, window.stride, strict=True)):
        x = x.narrow(i + 2, 0, (window.sizes[i] - 1) * stride + kernel).unfold(
            i + 2, kernel, stride
        )
    return x


def added_up(parts: Tensor, sizes: Sequence[int], window: Window) -> Tensor:
    """Return the sum of `parts` (N, C, windows..., kernel...) on each element of an image.

    `sizes`: those of the image (N, C, ...); elements in the padding are left out.
    """
    rank = len(sizes) - 2
    for i in reversed(range(rank)):
        kernel, stride = window.kernel[i], window.stride[i]
        reach = (window.sizes[i] - 1) * stride + kernel
        room = [*parts.shape[: i + 2], reach, *parts.shape[i + 3 : -1]]
        parts = torch.ops.aten.unfold_backward(parts, room, i + 2, kernel, stride)
    # Elements that no window reaches have no part; negative padding cuts off.
    sides: list[int] = []
    for i in reversed(range(rank)):
        head = window.head[i]
        sides += [-head, sizes[i + 2] + head - parts.shape[i + 2]]
    return torch.constant_pad_nd(parts, sides) if any(sides) else parts
