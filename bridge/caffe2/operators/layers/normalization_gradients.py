# SPDX-License-Identifier: Apache-2.0
"""Gradients of the normalizations, from the moments returned by them."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last, enforce_per_channel
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOATS
from bridge.caffe2.operators.layers.matrix_products import as_matrix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["GroupNormGradient", "InstanceNormGradient", "LayerNormGradient", "SpatialBNGradient"]


def normal_gradient(scaled: Tensor, unit: Tensor, rstd: Tensor, dims: list[int]) -> Tensor:
    """Return dX of unit = (X - mean) * rstd, moments over `dims`.

    `scaled` is the gradient of `unit`.
    """
    mean = scaled.mean(dims, keepdim=True)
    along = (scaled * unit).mean(dims, keepdim=True)
    return (scaled - mean - unit * along) * rstd


@register_operator("SpatialBNGradient")
class SpatialBNGradient(FloatOperator):
    """(X, scale, dY, mean, 1 / deviation) -> dX, dscale, dbias.

    With `num_batches` > 1 inputs 5 and 6 are dscale and dbias summed over the batches.
    Follows SpatialBNGradientOp, caffe2/operators/spatial_batch_norm_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        order, batches = self.image_order(), self.GetSingleArgument("num_batches", 1)
        x, dy = channels_first(self.x(0), order), channels_first(self.x(2), order)
        self.enforce(x.dim() >= 3, "X has three dimensions or more", x)
        shape = [1, -1, *[1] * (x.dim() - 2)]
        scale, mean, rstd = (self.x(i) for i in (1, 3, 4))
        enforce_per_channel(self, x, scale, mean, rstd)
        scale, mean, rstd = (one.view(shape) for one in (scale, mean, rstd))
        unit = (x - mean) * rstd
        dims = [0, *range(2, x.dim())]
        if batches > 1:
            self.enforce(self.InputSize() == 7, "inputs 5 and 6, sums over the batches, are given")
            # Without examples the gradients are 0, regardless of the sums.
            share = 1 / batches if x.shape[0] else 0.0
            dscale, dbias = self.x(5) * share, self.x(6) * share
        else:
            dscale, dbias = (dy * unit).sum(dims), dy.sum(dims)
        count = max(x.numel() // x.shape[1], 1)
        along = torch.addcmul(dbias.view(shape), unit, dscale.view(shape)).div_(count)
        self.put(0, channels_last((dy - along) * (scale * rstd), order))
        self.put(1, dscale)
        self.put(2, dbias)


@register_operator("InstanceNormGradient")
class InstanceNormGradient(FloatOperator):
    """(X, scale, bias, dY, optionally mean, 1 / deviation) -> dX, dscale, dbias.

    Follows InstanceNormGradientOp, caffe2/operators/instance_norm_gradient_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        order = self.image_order()
        x, dy = channels_first(self.x(0), order), channels_first(self.x(3), order)
        rows, drows, scale = x.flatten(2), dy.flatten(2), self.x(1).view(1, -1, 1)
        self.enforce(scale.numel() == x.shape[1], "there is one value per channel", self.x(1), x)
        if not x.numel():
            for i, shape in enumerate((self.Input(0).shape, x.shape[1:2], x.shape[1:2])):
                self.out(i, shape).zero_()
            return
        if self.InputSize() == 6:
            mean, rstd = (self.x(i).view(*x.shape[:2], 1) for i in (4, 5))
        else:
            var, mean = torch.var_mean(rows, 2, correction=0, keepdim=True)
            rstd = (var + self.GetSingleArgument("epsilon", 1e-5)).rsqrt_()
        unit = (rows - mean) * rstd
        dx = normal_gradient(drows * scale, unit, rstd, [2])
        self.put(0, channels_last(dx.view(x.shape), order))
        self.put(1, (drows * unit).sum((0, 2)))
        self.put(2, drows.sum((0, 2)))


@register_operator("GroupNormGradient")
class GroupNormGradient(FloatOperator):
    """(dY, X, scale, bias, mean, 1 / deviation) -> dX, dscale, dbias.

    Follows GroupNormGradientOp, caffe2/operators/group_norm_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        order, group = self.image_order(), self.GetSingleArgument("group", 32)
        dy, x = channels_first(self.x(0), order), channels_first(self.x(1), order)
        n, channels = x.shape[:2]
        self.enforce(channels % group == 0, "the number of channels is divisible by group", x)
        split = (n, group, channels // group, -1)
        rows, drows = x.reshape(split), dy.reshape(split)
        scale = self.x(2).view(1, group, -1, 1)
        mean, rstd = (self.x(i).view(n, group, 1, 1) for i in (4, 5))
        unit = (rows - mean) * rstd
        dx = normal_gradient(drows * scale, unit, rstd, [2, 3])
        self.put(0, channels_last(dx.view(x.shape), order))
        self.put(1, (drows * unit).sum((0, 3)).view(-1))
        self.put(2, drows.sum((0, 3)).view(-1))


@register_operator("LayerNormGradient")
class LayerNormGradient(FloatOperator):
    """(dY, Y, mean, deviation, X, optionally scale) -> dX, optionally dscale, dbias.

    Scale and its gradients are used with `elementwise_affine`.
    Follows LayerNormGradientOp, caffe2/operators/layer_norm_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        dy, x = self.x(0), self.x(4)
        rows = as_matrix(x, self.axis(x, "axis", 1))
        drows = dy.view(rows.shape)
        mean, rstd = self.x(2).view(-1, 1), self.x(3).view(-1, 1).reciprocal()
        unit = (rows - mean) * rstd
        scaled = drows
        if self.GetSingleArgument("elementwise_affine", False):
            self.enforce(
                self.InputSize() == 6 and self.OutputSize() == 3, "there is an input for the scale"
            )
            scale = self.x(5)
            scaled = drows * scale.view(1, -1)
            self.put(1, (drows * unit).sum(0).view(scale.shape))
            self.put(2, drows.sum(0).view(scale.shape))
        self.put(0, normal_gradient(scaled, unit, rstd, [1]).view(x.shape))


@register_operator("RMSNormGradient")
class RMSNormGradient(FloatOperator):
    """(dY, X, scale, 1 / rms) -> dX, dscale, dbias.

    Follows RMSNormGradientOp, caffe2/operators/rms_norm_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(1, FLOATS)
        same = (self.Input(1).dtype(),)
        dy, scale, rrms = self.x(0, same), self.x(2, same), self.x(3, same).view(-1, 1)
        rows = as_matrix(x, self.axis(x, "axis", 1))
        drows = dy.view(rows.shape)
        unit, scaled = rows * rrms, drows * scale.view(1, -1)
        along = (scaled * unit).mean(1, keepdim=True)
        self.put(0, ((scaled - unit * along) * rrms).view(x.shape))
        self.put(1, (drows * unit).sum(0).view(scale.shape))
        self.put(2, drows.sum(0).view(scale.shape))
