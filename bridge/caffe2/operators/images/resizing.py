# SPDX-License-Identifier: Apache-2.0
"""Images resized by nearest or bilinear interpolation, and the gradients.

The sizes of an image are multiplied by scales in float32, and rounded down. The scales are
arguments, or an input with both: then its elements decide about sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.checks import image_order, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.images import image_kernels

_SCALES_3D = ((1.0, 2.0), (2.0,), (2.0,))  # those of Caffe2


def _scales(
    given: Tensor | None, *scales: float, allowed: Sequence[tuple[float, ...]] | None = None
) -> list[float]:
    """Return the scale of each dimension, from `given` if it is there.

    Raises EnforceNotMet: a scale is not positive, or not `allowed` for its dimension.
    """
    found = list(scales)
    if given is not None:
        require(given.dim() == 1 and given.numel() == 2, "there are two scales", given)
        found = given.tolist()
    require(min(found) > 0, "scales are positive", found)
    fits = allowed is None or all(map(tuple.__contains__, allowed, found))
    require(fits, f"scales are among {allowed}", found)
    return found


def _image(x: Tensor, order: str, rank: int) -> Tensor:
    """Return an image as (N, C, ...)."""
    require(x.dim() == 2 + rank, f"X has {2 + rank} dimensions", x)
    return channels_first(x, order)


def _grown(sizes: Sequence[int], scales: Sequence[float]) -> list[int]:
    """Return sizes multiplied by scales in float32, rounded down."""
    return [_times(size, scale) for size, scale in zip(sizes, scales, strict=True)]


def _times(size: int, scale: float) -> int:
    # Whole scales are exact, and keep sizes symbolic where torch traces.
    return size * int(scale) if float(scale).is_integer() else int(_single(size * scale))


def _single(value: float) -> float:
    """Return `value` rounded to float32, by arithmetic that torch's compiler can trace."""
    shifted = value * (2.0**29 + 1)
    return shifted - (shifted - value)


def _sources(size: int, to: int, scale: float, like: Tensor) -> Tensor:
    """Return, for each of `to` indices, the index / `scale` below `size`, rounded down."""
    divisor = torch.full((), scale, dtype=torch.float32, device=like.device)
    where = torch.arange(to, dtype=torch.float32, device=like.device) / divisor
    return where.long().clamp(max=size - 1)


def _nearest(x: Tensor, scales: list[float], order: str, out: Out) -> Tensor:
    """Return an image (N, C, ...) resized, in the order of the operator."""
    sizes = _grown(x.shape[2:], scales)
    if order == "NCHW" and len(sizes) == 2 and takes_kernels(x):
        room = x.new_empty(*x.shape[:2], *sizes) if out is None else out
        given = (x.shape[0] * x.shape[1], *x.shape[2:], *sizes, *scales)
        return run_kernel(image_kernels.resize_nearest, x, room, *given)
    for d, (to, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        if scale.is_integer():
            shape = (*x.shape[: d + 1], int(scale), *x.shape[d + 1 :])
            x = x.unsqueeze(d + 1).expand(shape).flatten(d, d + 1)
        else:
            x = x.index_select(d, _sources(x.shape[d], to, scale, x))
    return channels_last(x, order)


def _added_back(dy: Tensor, x: Tensor, scales: list[float], order: str) -> Tensor:
    """Return the gradient of `x`: each element of `dy` is added at its source."""
    for d, scale in enumerate(scales, 2):
        where = _sources(x.shape[d], dy.shape[d], scale, dy)
        room = dy.new_zeros((*dy.shape[:d], x.shape[d], *dy.shape[d + 1 :]))
        dy = room.index_add(d, where, dy)
    return channels_last(dy, order)


@operator("ResizeNearest", sized_by=("scales",), gradient="$Gradient g0 i0 i1? > 0")
def resize_nearest(
    x: Tensor,
    scales: Tensor | None = None,
    *,
    height_scale: float = 1.0,
    width_scale: float = 1.0,
    order: str = "NCHW",
    out: Out = None,
) -> Tensor:
    """X -> Y; each element is that of X at its index over the scale, rounded down.

    Raises EnforceNotMet: a scale is not positive, or X is not an image.
    Follows ResizeNearestOp, caffe2/operators/resize_op.cc, PyTorch 1.8.1.
    """
    order = image_order(order)
    x = _image(x, order, 2)
    return _nearest(x, _scales(scales, height_scale, width_scale), order, out)


@operator("ResizeNearest3D", gradient="$Gradient g0 i0 > 0")
def resize_nearest_3d(
    x: Tensor,
    *,
    temporal_scale: float = 1.0,
    height_scale: float = 1.0,
    width_scale: float = 1.0,
    order: str = "NCHW",
    out: Out = None,
) -> Tensor:
    """ResizeNearest of volumes (N, C, T, H, W), NCHW only, with Caffe2's fixed scales.

    Follows ResizeNearest3DOp, caffe2/operators/resize_3d_op.cc, PyTorch 1.8.1.
    """
    order = image_order(order)
    require(order == "NCHW", "the order is NCHW", order)
    scales = _scales(None, temporal_scale, height_scale, width_scale, allowed=_SCALES_3D)
    return _nearest(_image(x, order, 3), scales, order, out)


def _repeats(x: Tensor, scale: int) -> None:
    require(x.dim() in (3, 4), "X has 3 or 4 dimensions", x)
    require(scale > 0, "scale is positive", scale)


@operator("UpsampleNearest", gradient="$Gradient i0 g0 > 0")
def upsample_nearest(x: Tensor, *, scale: int = 2) -> Tensor:
    """X: (..., H, W) -> (..., scale * H, scale * W): each element `scale` times in both directions.

    X has 3 or 4 dimensions. Follows modules/detectron/upsample_nearest_op.h, PyTorch 1.8.1.
    """
    _repeats(x, scale)
    planes = x if x.dim() == 4 else x.unsqueeze(0)
    made = _nearest(planes, [float(scale)] * 2, "NCHW", None)
    return made.view(*x.shape[:-2], *made.shape[2:])


@operator("UpsampleNearestGradient", defaults=upsample_nearest)
def upsample_nearest_gradient(x: Tensor, dy: Tensor, *, scale: int) -> Tensor:
    """(X, dY) -> dX: the sum of the gradients of an element's copies."""
    _repeats(x, scale)
    *outer, height, width = x.shape
    require(dy.shape == (*outer, height * scale, width * scale), "dY has the sizes of Y", dy)
    return dy.view(*outer, height, scale, width, scale).sum((-3, -1))


@operator("ResizeNearestGradient", sized_by=("scales",))
def resize_nearest_gradient(
    dy: Tensor,
    x: Tensor,
    scales: Tensor | None = None,
    *,
    height_scale: float = 1.0,
    width_scale: float = 1.0,
    order: str = "NCHW",
) -> Tensor:
    """(dY, X, optionally scales) -> dX: each element of dY is added at its source in X."""
    order = image_order(order)
    dy, x = _image(dy, order, 2), _image(x, order, 2)
    return _added_back(dy, x, _scales(scales, height_scale, width_scale), order)


@operator("ResizeNearest3DGradient")
def resize_nearest_3d_gradient(
    dy: Tensor,
    x: Tensor,
    *,
    temporal_scale: float = 1.0,
    height_scale: float = 1.0,
    width_scale: float = 1.0,
    order: str = "NCHW",
) -> Tensor:
    """ResizeNearestGradient of volumes (N, C, T, H, W)."""
    order = image_order(order)
    scales = _scales(None, temporal_scale, height_scale, width_scale, allowed=_SCALES_3D)
    return _added_back(_image(dy, order, 3), _image(x, order, 3), scales, order)


@operator("UpsampleBilinear", sized_by=("scales",), gradient="$Gradient g0 i0 i1? > 0")
def upsample_bilinear(
    x: Tensor,
    scales: Tensor | None = None,
    *,
    height_scale: float = 1.0,
    width_scale: float = 1.0,
    out: Out = None,
) -> Tensor:
    """X: (N, C, H, W) -> Y, with aligned corners; the argument `order` is ignored, as in Caffe2.

    Follows UpsampleBilinearOp, caffe2/operators/upsample_op.cc, PyTorch 1.8.1.
    """
    x = _image(x, "NCHW", 2)
    sizes = _grown(x.shape[2:], _scales(scales, height_scale, width_scale))
    if not x.numel() or not min(sizes):
        return x.new_empty((*x.shape[:2], *sizes))
    return torch._C._nn.upsample_bilinear2d(x, sizes, True, out=out)  # type: ignore[call-arg]


@operator("UpsampleBilinearGradient", sized_by=("scales",))
def upsample_bilinear_gradient(dy: Tensor, x: Tensor, scales: Tensor | None = None) -> Tensor:
    """(dY, X, optionally scales) -> dX."""
    dy, x = _image(dy, "NCHW", 2), _image(x, "NCHW", 2)
    _scales(scales, 1.0, 1.0)
    if not dy.numel():
        return torch.zeros_like(x)
    back = torch.ops.aten.upsample_bilinear2d_backward
    return back(dy, list(dy.shape[2:]), list(x.shape), True)
