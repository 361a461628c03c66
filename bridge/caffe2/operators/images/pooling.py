# SPDX-License-Identifier: Apache-2.0
"""Pooling in one, two and three dimensions, in either order, and its gradients.

X -> Y: one value per window; for the arguments see Windows. The gradients are (X, Y, dY) -> dX.
Padding that torch does not support (heads and tails that differ, more than half a kernel, Caffe's
last window that extends over the edge) is added to a copy of the image. Maxima with their places
Caffe2 has for CUDA only. Follows pool_op.h and lp_pool_op.cc in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INT32, LARGEST, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.gradients import gradient_alone
from bridge.caffe2.operators.base.windows import Window, Windows, added_up, by_rank, windows_of
from bridge.caffe2.operators.images import image_kernels

_Dimension = tuple[int, int, int, int, int]

# (torch 2.7; before it nothing tells an export from a compilation)
_is_exporting = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)


class GradientWindows(Windows):
    """Windows of pooling, for its gradient."""

    allows_extra_dimensions = True


class PoolWindows(GradientWindows):
    """Windows of pooling. Raises EnforceNotMet: dilation, or a pad as large as the kernel."""

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        require(set(self.dilation) == {1}, "pooling has no dilation", self.dilation)
        if not self.is_global and len(self.pads) == 2 * len(self.kernel):
            small = all(
                pad < kernel for pad, kernel in zip(self.pads, self.kernel * 2, strict=True)
            )
            require(small, "pads are smaller than the kernel", self.pads, self.kernel)


def _images(x: Tensor, windows: Windows) -> tuple[Tensor, Window, Tensor | None]:
    """Return X (N, C, ...), the windows, and the result if there is nothing to pool.

    Raises EnforceNotMet: windows that do not fit, or an image has no elements.
    """
    x = windows.order.first(x)
    require(3 <= x.dim() <= 5, "X has one to three spatial dimensions", x)
    window = windows.on(x.shape[2:])
    if min(window.sizes) > 0 and 0 not in x.shape:
        return x, window, None
    require(0 not in x.shape[1:], "an image has at least one element", x)
    return x, window, windows.order.last(x.new_empty(*x.shape[:2], *window.sizes))


def _lowest(x: Tensor) -> float:
    """Return the least float32, or that of the type of `x` if it is shorter."""
    return max(-LARGEST, torch.finfo(x.dtype).min) if x.is_floating_point() else -LARGEST


def _is_native(x: Tensor, window: Window) -> bool:
    """Return whether torch supports this pooling of `x`.

    It needs equal heads and tails, of at most half a kernel, and kernels not larger than the image.
    """
    return window.is_even and all(
        2 * pad <= kernel <= size
        for pad, kernel, size in zip(window.head, window.kernel, x.shape[2:], strict=True)
    )


@by_rank("MaxPool", gradient="$Gradient i0 o0 g0 > 0")
def max_pool(x: Tensor, *, windows: PoolWindows, out: Out = None) -> Tensor:
    """Y = the maximum of each window of X."""
    order = windows.order
    x, window, nothing = _images(x, windows)
    if nothing is not None:
        return nothing
    if order.is_first and _suits_kernels(x, window):
        room = _room(out, x, window)
        return run_kernel(image_kernels.max_pool, x, room, *_kernel_sizes(x, window))
    wants_gradient = x.requires_grad and torch.is_grad_enabled()
    if wants_gradient and order.is_first and _suits_kernels(x.detach(), window):
        return run_kernel(_max_with_gradient, x, window)
    y = _native_max(x, window)
    if wants_gradient and not _is_exporting():
        y = _with_gradient(x, y.detach(), window)
    return order.last(y)


def _suits_kernels(x: Tensor, window: Window) -> bool:
    """Return whether our own kernels pool `x`: on the CPU several times as fast as torch."""
    return takes_kernels(x) and x.dim() <= 4 and min(window.head) >= 0


def _room(out: Out, x: Tensor, window: Window) -> Tensor:
    return x.new_empty(*x.shape[:2], *window.sizes) if out is None else out


def _kernel_sizes(x: Tensor, window: Window) -> tuple[int, _Dimension, _Dimension]:
    """Return the number of planes, and height and width of image, windows, kernel, stride, head."""
    parts = (x.shape[2:], window.sizes, window.kernel, window.stride, window.head)
    found = list(zip(*parts, strict=True))
    return x.shape[0] * x.shape[1], found[0] if len(found) == 2 else (1, 1, 1, 1, 0), found[-1]


def _max_with_gradient(x: Tensor, window: Window) -> Tensor:
    return _MaxPool.apply(x, window)  # type: ignore[no-untyped-call]


class _MaxPool(torch.autograd.Function):
    """The maxima by a kernel; of equal ones each has the whole gradient, as in Caffe2."""

    @staticmethod
    def forward(context: Any, x: Tensor, window: Window) -> Tensor:
        x = x.detach()
        y = image_kernels.max_pool(x, _room(None, x, window), *_kernel_sizes(x, window))
        context.save_for_backward(x, y)
        context.window = window
        return y

    @staticmethod
    def backward(context: Any, dy: Tensor) -> tuple[Tensor, None]:
        x, y = context.saved_tensors
        return _max_gradient(x, y.detach(), dy.contiguous(), context.window), None


def _max_gradient(x: Tensor, y: Tensor, dy: Tensor, window: Window) -> Tensor:
    """Return dX for X, Y and dY (N, C, ...)."""
    if takes_kernels(x, y, dy) and _suits_kernels(x, window):
        sizes = _kernel_sizes(x, window)
        return run_kernel(image_kernels.max_pool_gradient, x, y, dy, torch.empty_like(x), *sizes)
    rank = x.dim() - 2
    chosen = windows_of(window.padded(x, _lowest(x)), window) == _spread(y, rank)
    return added_up(torch.where(chosen, _spread(dy, rank), dy.new_zeros(())), x.shape, window)


def _native_max(x: Tensor, window: Window) -> Tensor:
    pool = getattr(torch, f"max_pool{x.dim() - 2}d")
    if _is_native(x, window):
        return pool(x, window.kernel, window.stride, window.head)
    return pool(window.padded(x, _lowest(x)), window.kernel, window.stride)


def _with_gradient(x: Tensor, y: Tensor, window: Window) -> Tensor:
    """Return `y` with the gradient of Caffe2: of equal maxima each has the whole gradient."""
    parts = windows_of(window.padded(x, _lowest(x)), window)
    chosen = parts == _spread(y, len(window.sizes))
    kernel = list(range(-len(window.sizes), 0))
    total = torch.where(chosen, gradient_alone(parts), parts.new_zeros(())).sum(kernel)
    return y + total


def _spread(y: Tensor, rank: int) -> Tensor:
    """Return a view (N, C, windows..., 1...) of a value per window."""
    return y[(...,) + (None,) * rank]


@by_rank("AveragePool", gradient="$Gradient i0 o0 g0 > 0")
def average_pool(
    x: Tensor, *, windows: PoolWindows, count_include_pad: int = 0, out: Out = None
) -> Tensor:
    """Y = the mean of each window, with padding only if `count_include_pad` is set."""
    x, window, nothing = _images(x, windows)
    if nothing is not None:
        return nothing
    whole = bool(count_include_pad)
    if windows.order.is_first and _suits_kernels(x, window):
        room = _room(out, x, window)
        return run_kernel(image_kernels.average_pool, x, room, *_kernel_sizes(x, window), whole)
    rank = x.dim() - 2
    pool = getattr(torch if rank == 1 else functional, f"avg_pool{rank}d")
    if _is_native(x, window):
        found = pool(x, window.kernel, window.stride, window.head, False, whole)
    else:
        found = pool(window.padded(x), window.kernel, window.stride)
        found = found if whole else found * _inside(x, window)
    return windows.order.last(found)


def _inside(x: Tensor, window: Window) -> Tensor:
    """Return per window the number of its elements over those in the image (N, C, ...)."""
    parts: Tensor = x.new_ones(())
    for i, size in enumerate(x.shape[2:]):
        kernel = window.kernel[i]
        place = torch.arange(window.sizes[i], dtype=x.dtype, device=x.device)
        start = place * window.stride[i] - window.head[i]
        count = (start + kernel).clamp(max=size) - start.clamp(min=0)
        parts = parts.unsqueeze(-1) * (kernel / count)
    return parts


@operator("LpPool", gradient="$Gradient i0 o0 g0 > 0")
def lp_pool(x: Tensor, *, windows: PoolWindows, p: float = 2.0) -> Tensor:
    """The p-norm of each window, in two dimensions."""
    x, window, nothing = _images(x, windows)
    if nothing is not None:
        return nothing
    require(x.dim() == 4, "X has two spatial dimensions", x)
    powers = window.padded(torch.pow(x.abs(), p))
    sums = functional.avg_pool2d(
        powers, list(window.kernel), list(window.stride), divisor_override=1
    )
    return windows.order.last(torch.pow(sums, 1 / p))


def _fitting(
    x: Tensor, y: Tensor, dy: Tensor, windows: Windows
) -> tuple[Tensor, Tensor, Tensor, Window]:
    """Return X, Y and dY (N, C, ...), and the windows.

    Raises EnforceNotMet: Y and dY do not have one value per window.
    """
    x, y, dy = (windows.order.first(one) for one in (x, y, dy))
    window = windows.on(x.shape[2:])
    sizes = (*x.shape[:2], *window.sizes)
    fits = tuple(y.shape) == sizes and tuple(dy.shape) == sizes
    require(fits, f"Y and dY have the sizes {list(sizes)}, a value per window", y, dy)
    return x, y, dy, window


@by_rank("MaxPool", "Gradient")
def max_pool_gradient(x: Tensor, y: Tensor, dy: Tensor, *, windows: GradientWindows) -> Tensor:
    """dX = the sum of dY over the windows whose maximum is X; of equal maxima each."""
    if x.numel() == 0:
        return torch.empty_like(x)
    x, y, dy, window = _fitting(x, y, dy, windows)
    return windows.order.last(_max_gradient(x, y, dy, window))


@by_rank("AveragePool", "Gradient")
def average_pool_gradient(
    x: Tensor, y: Tensor, dy: Tensor, *, windows: GradientWindows, count_include_pad: int = 0
) -> Tensor:
    """dX = the sum of dY / (number of elements) over the windows that contain X."""
    if x.numel() == 0:
        return torch.empty_like(x)
    x, y, dy, window = _fitting(x, y, dy, windows)
    if x.dim() == 4 and _is_native(x, window):
        sizes = (window.kernel, window.stride, window.head)
        dx = torch.ops.aten.avg_pool2d_backward(dy, x, *sizes, False, bool(count_include_pad), None)
        return windows.order.last(dx)
    dy = _spread(dy, x.dim() - 2)
    shares = dy / math.prod(window.kernel)
    if not count_include_pad:
        shares = shares * _spread(_inside(x, window), x.dim() - 2)
    parts = shares.expand(*x.shape[:2], *window.sizes, *window.kernel)
    return windows.order.last(added_up(parts, x.shape, window))


@operator("LpPoolGradient")
def lp_pool_gradient(
    x: Tensor, y: Tensor, dy: Tensor, *, windows: GradientWindows, p: float = 2.0
) -> Tensor:
    """dX = the sum over the windows of dY * X * |X|^(p - 2) / Y^(p - 1)."""
    if x.numel() == 0:
        return torch.empty_like(x)
    x, y, dy, window = _fitting(x, y, dy, windows)
    y, dy = _spread(y, 2), _spread(dy, 2)
    found = windows_of(window.padded(x), window)
    parts = dy * y.pow(1 - p) * found * found.abs().pow(p - 2)
    return windows.order.last(added_up(parts, x.shape, window))


@operator("MaxPoolWithIndex", gradient="$Gradient i0 g0 o1 > 0")
def max_pool_with_index(x: Tensor, *, windows: PoolWindows) -> tuple[Tensor, Tensor]:
    """X: (N, C, H, W) -> the maxima of windows, (N, C, H', W'), and their places, int32.

    A place counts the elements of the channel, row by row.
    """
    require(windows.order.is_first and x.dim() == 4, "X is (N, C, H, W)", x)
    window = windows.on(x.shape[2:])
    made, inner = windows_of(window.padded(x, -LARGEST), window).flatten(4).max(4)
    rows, columns = (
        torch.arange(count, dtype=torch.int64, device=x.device) * stride - head
        for count, stride, head in zip(window.sizes, window.stride, window.head, strict=True)
    )
    rows = rows.view(-1, 1) + inner.div(window.kernel[1], rounding_mode="floor")
    columns = columns + inner % window.kernel[1]
    return made, (rows * x.shape[3] + columns).int()


@operator("MaxPoolWithIndexGradient", types={"places": INT32})
def max_pool_with_index_gradient(x: Tensor, dy: Tensor, places: Tensor) -> Tensor:
    """(X, dY, places) -> dX: each gradient, added to the place of its maximum."""
    require(dy.shape == places.shape, "dY has the sizes of the places", dy, places)
    fits = x.dim() == dy.dim() == 4 and x.shape[:2] == dy.shape[:2]
    require(fits, "X and dY have 4 dimensions, and the same images and channels", x, dy)
    made = torch.zeros_like(x).flatten(2)
    made = made.scatter_add(2, places.flatten(2).long(), dy.flatten(2))
    return made.view(x.shape)
