# SPDX-License-Identifier: Apache-2.0
"""Pooling in one, two and three dimensions, in either order, and its gradients.

Padding that torch does not support (heads and tails that differ, more than half a kernel, Caffe's
last window that extends over the edge) is added to a copy of the image.
"""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.lazy_torch import functional, torch
from bridge.caffe2.operators.base.torch_operator import LARGEST
from bridge.caffe2.operators.base.window_operator import (
    SPATIAL,
    Window,
    WindowOperator,
    register_by_rank,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

__all__ = ["AveragePool", "AveragePoolGradient", "LpPool", "MaxPool", "MaxPoolGradient"]


class Pool(WindowOperator):
    """X: (N, C, ...) -> Y: (N, C, ...), one value per window. For the arguments see WindowOperator.

    Raises EnforceNotMet: dilation, a pad as large as the kernel, windows that do not fit.
    Follows PoolOp, caffe2/operators/pool_op.h, PyTorch 1.8.1.
    """

    allows_extra_dimensions = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.enforce(set(self.dilation) == {1}, "pooling has no dilation", self.dilation)
        if not self.is_global and len(self.pads) == 2 * len(self.kernel):
            small = all(
                pad < kernel for pad, kernel in zip(self.pads, self.kernel * 2, strict=True)
            )
            self.enforce(small, "pads are smaller than the kernel", self.pads, self.kernel)

    def RunOnDevice(self) -> None:
        x = channels_first(self.x(0), self.order)
        self.enforce(3 <= x.dim() <= 5, "X has one to three spatial dimensions", x)
        window = self.window(x.shape[2:])
        if x.numel() == 0 or min(window.sizes) <= 0:
            self.enforce(min(x.shape[1:]) > 0, "an image has at least one element", x)
            self.out(0, channels_last(x.new_empty(*x.shape[:2], *window.sizes), self.order).shape)
            return
        self.put(0, channels_last(self.pooled(x, window), self.order))

    def pooled(self, x: Tensor, window: Window) -> Tensor:
        """Pool an image (N, C, ...)."""
        raise NotImplementedError


def is_native(x: Tensor, window: Window) -> bool:
    """Return whether torch supports this pooling of `x`.

    It needs equal heads and tails, of at most half a kernel, and kernels not larger than the image.
    """
    return window.is_even and all(
        2 * pad <= kernel <= size
        for pad, kernel, size in zip(window.head, window.kernel, x.shape[2:], strict=True)
    )


@register_operator("MaxPool")
@register_operator("MaxPool1D")
@register_operator("MaxPool2D")
@register_operator("MaxPool3D")
class MaxPool(Pool):
    """The maximum of each window; see Pool."""

    def pooled(self, x: Tensor, window: Window) -> Tensor:
        pool = getattr(functional, f"max_pool{SPATIAL[x.dim() - 2]}")
        if is_native(x, window):
            found: Tensor = pool(x, window.kernel, window.stride, window.head)
            return found
        found = pool(window.padded(x, -LARGEST), window.kernel, window.stride)
        return found


@register_operator("AveragePool")
@register_operator("AveragePool1D")
@register_operator("AveragePool2D")
@register_operator("AveragePool3D")
class AveragePool(Pool):
    """The mean of each window, with padding only if `count_include_pad` is set; see Pool."""

    def pooled(self, x: Tensor, window: Window) -> Tensor:
        pool = getattr(functional, f"avg_pool{SPATIAL[x.dim() - 2]}")
        whole = bool(self.GetSingleArgument("count_include_pad", False))
        if is_native(x, window):
            found: Tensor = pool(
                x, window.kernel, window.stride, window.head, count_include_pad=whole
            )
            return found
        found = pool(window.padded(x), window.kernel, window.stride)
        return found if whole else found.mul_(inside(x, window))


def inside(x: Tensor, window: Window) -> Tensor:
    """Return per window the number of its elements over those in the image (N, C, ...)."""
    parts: Tensor = torch.ones((), dtype=x.dtype)
    for i, size in enumerate(x.shape[2:]):
        start = torch.arange(window.sizes[i]) * window.stride[i] - window.head[i]
        count = (start + window.kernel[i]).clamp(max=size) - start.clamp(min=0)
        parts = parts.unsqueeze(-1) * (window.kernel[i] / count)
    return parts


@register_operator("LpPool")
class LpPool(Pool):
    """The p-norm of each window, in two dimensions; argument `p` (2); see Pool.

    Follows PoolOp<float, CPUContext, LpPoolFunctor>, caffe2/operators/lp_pool_op.cc, PyTorch 1.8.1.
    """

    def pooled(self, x: Tensor, window: Window) -> Tensor:
        self.enforce(x.dim() == 4, "X has two spatial dimensions", x)
        p = self.GetSingleArgument("p", 2.0)
        powers = window.padded(x.abs().pow_(p))
        sums: Tensor = functional.avg_pool2d(
            powers, window.kernel, window.stride, divisor_override=1
        )
        return sums.pow_(1 / p)


class PoolGradient(WindowOperator):
    """(X, Y, dY) -> dX.

    Follows PoolGradientOp, caffe2/operators/pool_op.h, PyTorch 1.8.1.
    """

    allows_extra_dimensions = True

    def RunOnDevice(self) -> None:
        x, y, dy = (channels_first(self.x(i), self.order) for i in range(3))
        window = self.window(x.shape[2:])
        if x.numel() == 0:
            self.out(0, self.Input(0).shape)
            return
        self.put(0, channels_last(self.spread(x, y, dy, window), self.order))

    def spread(self, x: Tensor, y: Tensor, dy: Tensor, window: Window) -> Tensor:
        """Return the gradient of an image (N, C, ...)."""
        raise NotImplementedError


def windows_of(x: Tensor, window: Window) -> Tensor:
    """Return a view (N, C, windows..., kernel...) of the padded `x` (N, C, ...)."""
    for i, (kernel, stride) in enumerate(zip(window.kernel, window.stride, strict=True)):
        x = x.unfold(i + 2, kernel, stride)
        x = x.narrow(i + 2, 0, window.sizes[i])
    return x


def added_up(parts: Tensor, x: Tensor, window: Window) -> Tensor:
    """Return the sum of the `parts` (N, C, windows..., kernel...) on each element of `x`."""
    room = torch.zeros_like(window.padded(x), memory_format=torch.contiguous_format)
    index = windows_of(torch.arange(room.numel()).view(room.shape), window)
    room.view(-1).index_add_(0, index.reshape(-1), parts.reshape(-1))
    return window.unpadded(room)


@register_by_rank("MaxPool", "Gradient")
class MaxPoolGradient(PoolGradient):
    """dX = the sum of dY over the windows whose maximum is X; of equal maxima each."""

    def spread(self, x: Tensor, y: Tensor, dy: Tensor, window: Window) -> Tensor:
        rank = x.dim() - 2
        shape = (*y.shape, *(1,) * rank)
        chosen = windows_of(window.padded(x, -LARGEST), window) == y.reshape(shape)
        return added_up(torch.where(chosen, dy.reshape(shape), 0.0), x, window)


@register_by_rank("AveragePool", "Gradient")
class AveragePoolGradient(PoolGradient):
    """dX = the sum of dY / (number of elements) over the windows that contain X."""

    def spread(self, x: Tensor, y: Tensor, dy: Tensor, window: Window) -> Tensor:
        rank = x.dim() - 2
        elements = 1
        for kernel in window.kernel:
            elements *= kernel
        shares = dy / elements
        if not self.GetSingleArgument("count_include_pad", False):
            shares = shares * inside(x, window)
        shape = (*shares.shape, *(1,) * rank)
        return added_up(shares.reshape(shape).expand(*shares.shape, *window.kernel), x, window)


@register_operator("LpPoolGradient")
class LpPoolGradient(PoolGradient):
    """dX = the sum over the windows of dY * X * |X|^(p - 2) / Y^(p - 1)."""

    def spread(self, x: Tensor, y: Tensor, dy: Tensor, window: Window) -> Tensor:
        p = self.GetSingleArgument("p", 2.0)
        shape = (*y.shape, *(1,) * (x.dim() - 2))
        found = windows_of(window.padded(x), window)
        slopes = (dy * y.pow(1 - p)).reshape(shape)
        return added_up(slopes * found * found.abs().pow(p - 2), x, window)
