# SPDX-License-Identifier: Apache-2.0
"""Images resized by nearest or bilinear interpolation, and the gradients."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import functional, torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

__all__ = ["ResizeNearest", "ResizeNearest3D", "UpsampleBilinear"]


class Scaled(FloatOperator):
    """An operator on an image whose sizes are multiplied by scales, rounded down.

    Arguments: `height_scale` and `width_scale` (1), or an input with both; in three dimensions also
    `temporal_scale`; `order` (NCHW).
    Raises EnforceNotMet: a scale is not positive, or the image has the wrong number of dimensions.
    """

    names: tuple[str, ...] = ("height_scale", "width_scale")
    allowed: tuple[tuple[float, ...], ...] | None = None

    def scales(self, given: int) -> list[float]:
        """Return the scale of each dimension, from input `given` if there is one."""
        if self.InputSize() > given:
            values = self.x(given)
            self.enforce(values.dim() == 1 and values.numel() == 2, "there are two scales", values)
            found: list[float] = values.tolist()
        else:
            # Rounded to float32, as in Caffe2.
            given_scales = [self.GetSingleArgument(name, 1.0) for name in self.names]
            found = torch.tensor(given_scales, dtype=torch.float32).tolist()
        self.enforce(min(found) > 0, "scales are positive", found)
        allowed = self.allowed
        self.enforce(
            allowed is None or all(map(tuple.__contains__, allowed, found)),
            f"scales are among {allowed}",
            found,
        )
        return found

    def image(self, i: int) -> Tensor:
        """Return input `i`, an image, as (N, C, ...)."""
        x = self.x(i)
        self.enforce(x.dim() == 2 + len(self.names), f"X has {len(self.names) + 2} dimensions", x)
        return channels_first(x, self.image_order())


def grown(sizes: Sequence[int], scales: Sequence[float]) -> list[int]:
    """Return sizes multiplied by scales in float32, rounded down."""
    product = torch.tensor(sizes, dtype=torch.float32) * torch.tensor(scales)
    found: list[int] = product.int().tolist()
    return found


def nearest(size: int, to: int, scale: float) -> Tensor:
    """Return, for each of `to` indices, the index / `scale` below `size`, rounded down."""
    where = torch.arange(to, dtype=torch.float32) / torch.tensor(scale, dtype=torch.float32)
    found: Tensor = where.long().clamp_(max=size - 1)
    return found


@register_operator("ResizeNearest")
class ResizeNearest(Scaled):
    """X -> Y; each element is that of X at its index over the scale, rounded down; see Scaled.

    Follows ResizeNearestOp, caffe2/operators/resize_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, scales = self.image(0), self.scales(1)
        sizes = grown(x.shape[2:], scales)
        for i, (to, scale) in enumerate(zip(sizes, scales, strict=True), 2):
            x = x.index_select(i, nearest(x.shape[i], to, scale))
        self.put(0, channels_last(x, self.image_order()))


@register_operator("ResizeNearest3D")
class ResizeNearest3D(ResizeNearest):
    """ResizeNearest of volumes (N, C, T, H, W), NCHW only, with Caffe2's fixed scales.

    Follows ResizeNearest3DOp, caffe2/operators/resize_3d_op.cc, PyTorch 1.8.1.
    """

    names = ("temporal_scale", "height_scale", "width_scale")
    allowed = ((1.0, 2.0), (2.0,), (2.0,))

    def image_order(self) -> str:
        order = super().image_order()
        self.enforce(order == "NCHW", "the order is NCHW", order)
        return order


@register_operator("ResizeNearestGradient")
class ResizeNearestGradient(Scaled):
    """(dY, X, optionally scales) -> dX: each element of dY is added at its source in X."""

    def RunOnDevice(self) -> None:
        dy, x, scales = self.image(0), self.image(1), self.scales(2)
        for i, scale in enumerate(scales, 2):
            where = nearest(x.shape[i], dy.shape[i], scale)
            room = dy.new_zeros([x.shape[i] if d == i else n for d, n in enumerate(dy.shape)])
            dy = room.index_add_(i, where, dy)
        self.put(0, channels_last(dy, self.image_order()))


@register_operator("ResizeNearest3DGradient")
class ResizeNearest3DGradient(ResizeNearestGradient):
    """ResizeNearestGradient of volumes (N, C, T, H, W)."""

    names = ResizeNearest3D.names
    allowed = ResizeNearest3D.allowed


class Bilinear(Scaled):
    """An operator on an image (N, C, H, W); the argument `order` is ignored, as in Caffe2."""

    def image_order(self) -> str:
        return "NCHW"


@register_operator("UpsampleBilinear")
class UpsampleBilinear(Bilinear):
    """X: (N, C, H, W) -> Y, with aligned corners; see Bilinear.

    Follows UpsampleBilinearOp, caffe2/operators/upsample_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.image(0)
        sizes = grown(x.shape[2:], self.scales(1))
        if not x.numel() or not min(sizes):
            self.out(0, (*x.shape[:2], *sizes))
            return
        self.put(0, functional.interpolate(x, sizes, mode="bilinear", align_corners=True))


@register_operator("UpsampleBilinearGradient")
class UpsampleBilinearGradient(Bilinear):
    """(dY, X, optionally scales) -> dX."""

    def RunOnDevice(self) -> None:
        dy, x = self.image(0), self.image(1)
        if not dy.numel():
            self.out(0, x.shape).zero_()
            return
        back = torch.ops.aten.upsample_bilinear2d_backward
        self.put(0, back(dy, dy.shape[2:], x.shape, True))
