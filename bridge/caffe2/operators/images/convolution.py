# SPDX-License-Identifier: Apache-2.0
"""Convolution in one, two and three dimensions, in either order, and its gradients.

NHWC runs as torch's channels_last on views of the same memory, so nothing is transposed.
"""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.lazy_torch import functional, torch
from bridge.caffe2.operators.base.window_operator import SPATIAL, WindowOperator, register_by_rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

    from bridge.caffe2.operators.base.window_operator import Window

__all__ = ["Conv", "ConvGradient", "ConvRelu"]


class Convolution(WindowOperator):
    """The base class of Conv and its gradient."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.group = self.GetSingleArgument("group", 1)
        self.enforce(not self.is_global, "global_pooling is not set")

    def operands(self) -> tuple[Tensor, Tensor, Window]:
        """Return X (N, C, ...), the filter (M, C / group, ...) and the windows."""
        x, w = self.x(0), self.x(1)
        self.enforce(3 <= x.dim() <= 5, "X has one to three spatial dimensions", x)
        self.enforce(x.dim() == w.dim(), "X and the filter have as many dimensions", x, w)
        x, w = channels_first(x, self.order), channels_first(w, self.order)
        channels = w.shape[1] * self.group
        self.enforce(
            x.shape[1] == channels, "X has as many channels as the filter, times group", x, w
        )
        self.enforce(w.shape[0] % self.group == 0, "the number of outputs is divisible by group", w)
        self.enforce(
            list(w.shape[2:]) == list(self.kernel), "the filter has the size of the kernel", w
        )
        self.enforce(min(x.shape[1:]) > 0, "an image has at least one element", x)
        return x, w, self.window(x.shape[2:])


@register_operator("Conv")
@register_operator("Conv1D")
@register_operator("Conv2D")
@register_operator("Conv3D")
class Conv(Convolution):
    """X: (N, C, ...), filter: (M, C / group, kernel...), optionally bias: (M) -> Y: (N, M, ...).

    In the order NHWC X is (N, ..., C), the filter (M, kernel..., C / group) and Y (N, ..., M). For
    the arguments see WindowOperator.
    Raises EnforceNotMet: shapes do not match.
    Follows ConvOp, caffe2/operators/conv_op_impl.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        self.put(0, self.convolved())

    def convolved(self) -> Tensor:
        """Return Y, in the operator's order."""
        x, w, window = self.operands()
        b = self.x(2) if self.InputSize() == 3 else None
        if min(window.sizes) <= 0:
            return channels_last(x.new_empty(len(x), len(w), *window.sizes), self.order)
        self.enforce(
            b is None or b.shape == w.shape[:1],
            "the bias has one dimension, with one value per output",
            b,
        )
        convolve = getattr(functional, f"conv{SPATIAL[x.dim() - 2]}")
        pads = window.head
        if not window.is_even:
            x, pads = window.padded(x), [0] * len(pads)
        y: Tensor = convolve(x, w, b, window.stride, pads, window.dilation, self.group)
        return channels_last(y, self.order)


@register_operator("ConvRelu")
class ConvRelu(Conv):
    """max(Conv, 0)."""

    def RunOnDevice(self) -> None:
        self.put(0, self.convolved().relu_())


@register_by_rank("Conv", "Gradient")
class ConvGradient(Convolution):
    """(X, filter, dY) -> dfilter, dbias unless `no_bias`, and dX if there is an output for it.

    Follows ConvGradientOp, caffe2/operators/conv_op_impl.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, w, window = self.operands()
        dy = channels_first(self.x(2), self.order)
        has_bias, has_dx = self.gradients_requested()
        padded = x if window.is_even else window.padded(x)
        dx, dw, db = torch.ops.aten.convolution_backward(
            dy,
            padded,
            w,
            w.shape[:1],
            window.stride,
            window.head if padded is x else [0] * len(window.head),
            window.dilation,
            False,
            [0] * len(window.head),
            self.group,
            [has_dx, True, has_bias],
        )
        self.put(0, channels_last(dw, self.order))
        if has_bias:
            self.put(1, db)
        if has_dx:
            dx = dx if padded is x else window.unpadded(dx)
            self.put(self.OutputSize() - 1, channels_last(dx, self.order))
