# SPDX-License-Identifier: Apache-2.0
"""Images resized by nearest or bilinear interpolation, and the gradients.

The sizes of an image are multiplied by scales in float32, and rounded down. The scales are
arguments, or an input with both: then its elements decide about sizes. Follows resize_op.cc,
resize_3d_op.cc and upsample_op.cc in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.channels import Order
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.images import image_kernels


class Scales:
    """The arguments `height_scale` and `width_scale` (1), unless they are an input."""

    takes = "float height_scale, float width_scale"

    def __init__(self, arguments: Arguments) -> None:
        self.own = [arguments.single(f"{name}_scale", 1.0) for name in ("height", "width")]

    def of(self, given: Tensor | None) -> list[float]:
        """Return the scales, those of the input if there is one.

        Raises EnforceNotMet: a scale is not positive.
        """
        if given is not None:
            require(given.dim() == 1 and given.numel() == 2, "there are two scales", given)
        found: list[float] = self.own if given is None else given.tolist()
        require(min(found) > 0, "scales are positive", found)
        return found


class VolumeScales(Scales):
    """The arguments of Scales and `temporal_scale` (1), which is 1 or 2; the others are 2."""

    takes = f"{Scales.takes}, float temporal_scale"

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.own.insert(0, arguments.single("temporal_scale", 1.0))
        fits = self.own[0] in (1, 2) and self.own[1:] == [2, 2]
        require(fits, "temporal_scale is 1 or 2, as in Caffe2, and the others are 2", self.own)


def _image(x: Tensor, order: Order | None, rank: int = 2) -> Tensor:
    """Return an image as (N, C, ...)."""
    require(x.dim() == 2 + rank, f"X has {2 + rank} dimensions", x)
    return x if order is None else order.first(x)


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


def _nearest(x: Tensor, scales: list[float], is_first: bool, out: Out = None) -> Tensor:
    """Return an image (N, C, ...) resized; `is_first`: that is its order in memory, too."""
    sizes = _grown(x.shape[2:], scales)
    if is_first and len(sizes) == 2 and takes_kernels(x):
        room = x.new_empty(*x.shape[:2], *sizes) if out is None else out
        given = (x.shape[0] * x.shape[1], *x.shape[2:], *sizes, *scales)
        return run_kernel(image_kernels.resize_nearest, x, room, *given)
    for d, (to, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        if scale.is_integer():
            shape = (*x.shape[: d + 1], int(scale), *x.shape[d + 1 :])
            x = x.unsqueeze(d + 1).expand(shape).flatten(d, d + 1)
        else:
            x = x.index_select(d, _sources(x.shape[d], to, scale, x))
    return x


def _added_back(dy: Tensor, x: Tensor, scales: list[float]) -> Tensor:
    """Return the gradient of `x`: each element of `dy` is added at its source."""
    for d, scale in enumerate(scales, 2):
        where = _sources(x.shape[d], dy.shape[d], scale, dy)
        room = dy.new_zeros((*dy.shape[:d], x.shape[d], *dy.shape[d + 1 :]))
        dy = room.index_add(d, where, dy)
    return dy


@operator("ResizeNearest", sized_by=("scales",), gradient="$Gradient g0 i0 i1? > 0")
def resize_nearest(
    x: Tensor, scales: Tensor | None = None, *, own: Scales, order: Order, out: Out = None
) -> Tensor:
    """X -> Y; each element is that of X at its index over the scale, rounded down."""
    return order.last(_nearest(_image(x, order), own.of(scales), order.is_first, out))


@operator("ResizeNearest3D", gradient="$Gradient g0 i0 > 0")
def resize_nearest_3d(x: Tensor, *, own: VolumeScales, order: Order, out: Out = None) -> Tensor:
    """ResizeNearest of volumes (N, C, T, H, W), NCHW only, with Caffe2's fixed scales."""
    require(order.is_first, "order is NCHW, not NHWC")
    return _nearest(_image(x, order, 3), own.of(None), True, out)


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
    made = _nearest(planes, [float(scale)] * 2, True)
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
    dy: Tensor, x: Tensor, scales: Tensor | None = None, *, own: Scales, order: Order
) -> Tensor:
    """(dY, X, optionally scales) -> dX: each element of dY is added at its source in X."""
    return order.last(_added_back(_image(dy, order), _image(x, order), own.of(scales)))


@operator("ResizeNearest3DGradient")
def resize_nearest_3d_gradient(dy: Tensor, x: Tensor, *, own: VolumeScales, order: Order) -> Tensor:
    """ResizeNearestGradient of volumes (N, C, T, H, W)."""
    return order.last(_added_back(_image(dy, order, 3), _image(x, order, 3), own.of(None)))


@operator("UpsampleBilinear", sized_by=("scales",), gradient="$Gradient g0 i0 i1? > 0")
def upsample_bilinear(
    x: Tensor, scales: Tensor | None = None, *, own: Scales, out: Out = None
) -> Tensor:
    """X: (N, C, H, W) -> Y, with aligned corners; the argument `order` is ignored, as in Caffe2."""
    sizes = _grown(_image(x, None).shape[2:], own.of(scales))
    if not x.numel() or not min(sizes):
        return x.new_empty((*x.shape[:2], *sizes))
    return torch._C._nn.upsample_bilinear2d(x, sizes, True, out=out)  # type: ignore[call-arg]


@operator("UpsampleBilinearGradient", sized_by=("scales",))
def upsample_bilinear_gradient(
    dy: Tensor, x: Tensor, scales: Tensor | None = None, *, own: Scales
) -> Tensor:
    """(dY, X, optionally scales) -> dX."""
    dy, x = _image(dy, None), _image(x, None)
    own.of(scales)  # raises
    if not dy.numel():
        return torch.zeros_like(x)
    back = torch.ops.aten.upsample_bilinear2d_backward
    return back(dy, list(dy.shape[2:]), list(x.shape), True)
