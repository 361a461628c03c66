# SPDX-License-Identifier: Apache-2.0
"""WindowOperator: windows on an image, by kernel, stride, dilation and padding.

Follows ConvPoolOpBase, caffe2/operators/conv_pool_op_base.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from torch import Tensor

    Class = TypeVar("Class", bound=type[Any])

__all__ = ["SPATIAL", "Window", "WindowOperator", "register_by_rank"]

SPATIAL = {1: "1d", 2: "2d", 3: "3d"}

NOTSET, VALID, SAME, CAFFE_LEGACY_POOLING = range(4)  # caffe2/proto/caffe2_legacy.proto


def register_by_rank(name: str, suffix: str = "") -> Callable[[Class], Class]:
    """Return a decorator that registers a class as `name`, and with 1D, 2D and 3D after it."""

    def register(cls: Class) -> Class:
        for rank in ("", "1D", "2D", "3D"):
            register_operator(f"{name}{rank}{suffix}")(cls)
        return cls

    return register


class Window:
    """Windows on an image of given sizes.

    `kernel`, `stride`, `dilation`, `head` and `tail` padding and `sizes`, the number of windows,
    are lists by spatial dimension. `is_even`: head and tail padding are equal and not negative, as
    torch supports it.
    """

    __slots__ = ("dilation", "head", "is_even", "kernel", "sizes", "stride", "tail")

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

    def padded(self, x: Tensor, value: float = 0.0) -> Tensor:
        """Return a padded copy of `x` (N, C, ...), or `x` itself if there is no padding."""
        pads = [pad for pair in zip(self.head, self.tail, strict=True) for pad in reversed(pair)]
        pads.reverse()
        return torch.nn.functional.pad(x, pads, value=value) if any(pads) else x

    def unpadded(self, x: Tensor) -> Tensor:
        """Return a view of `x` (N, C, ...) without the padding."""
        for i, (head, tail) in enumerate(zip(self.head, self.tail, strict=True)):
            x = x.narrow(i + 2, head, x.shape[i + 2] - head - tail)
        return x


class WindowOperator(FloatOperator):
    """An operator on windows of images.

    Arguments: `kernel`, `kernel_h` and `kernel_w`, or `kernels`; `stride` and `dilation` (1)
    likewise; `pad` (0), or by side `pad_t`, `pad_l`, `pad_b`, `pad_r`, or `pads`, all heads before
    the tails; `legacy_pad` (0: explicit pads, 1 VALID: no padding, 2 SAME: size / stride windows,
    rounded up, 3: as pooling in Caffe); `global_pooling` (0): one window, the whole image; `order`
    (NCHW); `group` (1).
    """

    # The last sizes and their windows: most images that an operator receives have one size.
    _cached: tuple[Sequence[int], Window] | None = None
    # Whether the arguments may describe more dimensions than the image has: `kernel` sets two.
    allows_extra_dimensions = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.order = self.image_order()
        self.legacy = self.GetSingleArgument("legacy_pad", NOTSET)
        self.is_global = bool(self.GetSingleArgument("global_pooling", 0))
        self.kernel = self._pair("kernel") or [0, 0]
        rank = len(self.kernel)
        self.stride = self._pair("stride") or [1] * rank
        self.dilation = self._pair("dilation") or [1] * rank
        self.pads = self._pads() or [0] * 2 * rank
        implicit = self.legacy in (VALID, SAME)
        self.enforce(
            not (implicit and any(map(self.HasArgument, ("pads", "pad", "pad_t")))),
            "legacy_pad VALID and SAME are used without pads",
        )
        self.enforce(
            len(self.stride) == rank, "there are as many strides as kernel sizes", self.stride
        )
        self.enforce(
            len(self.dilation) == rank, "there are as many dilations as kernel sizes", self.dilation
        )
        self.enforce(
            implicit or len(self.pads) == 2 * rank, "there are two pads per kernel size", self.pads
        )
        if self.is_global:
            plain = not any(self.pads) and {*self.stride, *self.dilation} <= {1}
            self.enforce(plain, "global_pooling is used without pad, dilation and stride")
        self.enforce(
            min(self.kernel) >= 0 and min(self.dilation) >= 0 and min(self.stride) >= 0,
            "kernel, stride and dilation are not negative",
            self.kernel,
            self.stride,
            self.dilation,
        )

    def gradients_requested(self) -> tuple[bool, bool]:
        """Return whether the gradients of bias and of X are outputs, besides that of the filter.

        Argument: `no_bias` (False): there is no gradient of the bias. That of X is the last output.
        """
        has_bias = not self.GetSingleArgument("no_bias", 0)
        outputs = self.OutputSize()
        self.enforce(has_bias or outputs < 3, "there are two outputs with `no_bias`")
        return has_bias, outputs == 2 + has_bias

    def window(self, sizes: Sequence[int]) -> Window:
        """Return the windows of an image of these spatial sizes.

        Raises EnforceNotMet: they do not fit.
        """
        if self._cached is None or self._cached[0] != sizes:
            self._cached = sizes, self._window(sizes)
        return self._cached[1]

    def _window(self, sizes: Sequence[int]) -> Window:
        rank = len(sizes)
        if self.is_global:
            zeros, ones = [0] * rank, [1] * rank
            return Window(list(sizes), ones, ones, zeros, zeros, ones)
        given = len(self.kernel)
        self.enforce(
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
            self.enforce(dilation == 1, "legacy_pad SAME is used without dilation", dilation)
            needed = (-(-size // stride) - 1) * stride + kernel - size
            head = int(needed / 2)
            return head, needed - head, int((size + needed - reach) / stride) + 1
        if self.legacy == CAFFE_LEGACY_POOLING:
            self.enforce(head >= 0, "pads are not negative", head)
            span = (size + head * 2 - kernel) / stride + 1
            out, standard = math.ceil(span), int(span)
            if head > 0 and (out - 1) * stride >= size + head:
                out -= 1
            tail = head + stride * (out - standard)
            self.enforce(out >= standard, "the last window begins in the image", size, head)
            # Caffe counts windows as if there were no dilation, which may be too many.
            actual = (size + head + tail - reach) // stride + 1
            self.enforce(dilation == 1 or out == actual, "dilated windows fit", out, actual)
            return head, tail, out
        self.enforce(
            size + head + tail >= reach, "the kernel fits into the padded image", size, reach
        )
        return head, tail, (size + head + tail - reach) // stride + 1

    def _pair(self, name: str) -> list[int]:
        """Read an argument given once, for height and width, or for each dimension."""
        values = [int(value) for value in self.GetRepeatedArgument(f"{name}s", [])]
        if self.HasArgument(name):
            # Like std::vector::resize(2, value): existing values stay.
            return (values + [int(self.GetSingleArgument(name, 0))] * 2)[:2]
        if self.HasArgument(f"{name}_h") and self.HasArgument(f"{name}_w"):
            values += [int(self.GetSingleArgument(f"{name}_{side}", 0)) for side in "hw"]
        return values

    def _pads(self) -> list[int]:
        values = [int(value) for value in self.GetRepeatedArgument("pads", [])]
        if self.HasArgument("pad"):
            return (values + [int(self.GetSingleArgument("pad", 0))] * 4)[:4]
        sides = [f"pad_{side}" for side in "tlbr"]
        if all(map(self.HasArgument, sides)):
            values += [int(self.GetSingleArgument(side, 0)) for side in sides]
        return values
