# SPDX-License-Identifier: Apache-2.0
"""Operators with parameters or sums per channel of an image."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import by_channel, channel_sums
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.layers.matrix_products import as_matrix

__all__ = ["AffineChannel", "ChannelShuffle"]


class Shuffle(FloatOperator):
    """Transpose X's channels as a matrix; arguments `group` (1), `order` (NCHW).

    Raises EnforceNotMet: the number of channels is not divisible by `group`.
    Follows ChannelShuffleOp, caffe2/operators/channel_shuffle_op.cc, PyTorch 1.8.1.
    """

    backwards = False

    def RunOnDevice(self) -> None:
        order, group = self.image_order(), self.GetSingleArgument("group", 1)
        x = self.x(0)
        channel = 1 if order == "NCHW" else x.dim() - 1
        self.enforce(x.dim() >= 2, "X has a channel dimension", x)
        self.enforce(
            x.shape[channel] % group == 0, "the number of channels is divisible by group", x
        )
        split = [-1, group] if self.backwards else [group, -1]
        split[split.index(-1)] = x.shape[channel] // group
        parts = x.view(*x.shape[:channel], *split, *x.shape[channel + 1 :])
        turned = parts.transpose(channel, channel + 1)
        y = self.out(0, x.shape)
        y.view(turned.shape).copy_(turned)


@register_operator("ChannelShuffle")
class ChannelShuffle(Shuffle):
    """Shuffle of a matrix with `group` rows."""


@register_operator("ChannelShuffleGradient")
class ChannelShuffleGradient(Shuffle):
    """Shuffle of a matrix with `group` columns."""

    backwards = True


@register_operator("AffineChannel")
class AffineChannel(FloatOperator):
    """(X, scale, bias) -> scale * X + bias, per channel; argument `order` (NCHW).

    Follows AffineChannelOp, caffe2/operators/affine_channel_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        order = self.image_order()
        if self.GetSingleArgument("is_learnable", False):
            self.enforce(not self.IsInputOutputAlias(0, 0), "is_learnable is not used in place")
        x = self.x(0)
        scale, bias = (by_channel(self, self.x(i), x, order) for i in (1, 2))
        torch.addcmul(bias, x, scale, out=self.out(0, x.shape))


@register_operator("AffineChannelGradient")
class AffineChannelGradient(FloatOperator):
    """(dY, scale) -> dX; with `is_learnable` (dY, X, scale) -> dX, dscale, dbias."""

    def RunOnDevice(self) -> None:
        order, learnable = self.image_order(), self.GetSingleArgument("is_learnable", False)
        dy = self.x(0)
        scale = by_channel(self, self.x(2 if learnable else 1), dy, order)
        if learnable:
            x = self.x(1)
            self.put(1, channel_sums(dy * x, order))
            self.put(2, channel_sums(dy, order))
        torch.mul(dy, scale, out=self.out(0, dy.shape))


@register_operator("ChannelStats")
class ChannelStats(FloatOperator):
    """X -> the sums of X and of X^2 per channel (C); argument `order` (NCHW).

    Follows ChannelStatsOp, caffe2/operators/channel_stats_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        order, x = self.image_order(), self.x(0)
        self.put(0, channel_sums(x, order))
        self.put(1, channel_sums(x * x, order))


@register_operator("BatchMoments")
class BatchMoments(FloatOperator):
    """X -> the means of X and of X^2 by channel (C); argument `order` (NCHW).

    Follows BatchMomentsOp, caffe2/operators/batch_moments_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        order, x = self.image_order(), self.x(0)
        sums = channel_sums(x, order), channel_sums(x * x, order)
        for i, one in enumerate(sums):
            self.put(i, one.mul_(one.numel() / max(x.numel(), 1)))


@register_operator("BatchMomentsGradient")
class BatchMomentsGradient(FloatOperator):
    """(dmean: (C), dsquares: (C), X) -> dX."""

    def RunOnDevice(self) -> None:
        order, x = self.image_order(), self.x(2)
        dmean, dsquares = (by_channel(self, self.x(i), x, order) for i in (0, 1))
        share = dmean.numel() / max(x.numel(), 1)
        dx = torch.addcmul(dmean, x, dsquares, value=2).mul_(share)
        self.put(0, dx)


@register_operator("ChannelBackpropStats")
class ChannelBackpropStats(FloatOperator):
    """(X, mean, 1 / deviation, dY) -> dscale, dbias per channel (C) of X: (N, C, ...).

    Follows ChannelBackpropStatsOp, caffe2/operators/channel_backprop_stats_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, dy = self.x(0), self.x(3)
        mean, rstd = (by_channel(self, self.x(i), x, "NCHW") for i in (1, 2))
        self.put(0, channel_sums((x - mean) * rstd * dy, "NCHW"))
        self.put(1, channel_sums(dy, "NCHW"))


@register_operator("ElementwiseLinear")
class ElementwiseLinear(FloatOperator):
    """(X: (N..., D...), a: (D), b: (D)) -> a * X + b; argument `axis` (1): the start of D.

    Follows ElementwiseLinearOp, caffe2/operators/elementwise_linear_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, a, b = self.x(0), self.x(1), self.x(2)
        axis = self.axis(x, "axis", 1)
        rows = as_matrix(x, axis)
        for values in (a, b):
            self.enforce(values.dim() == 1, "a and b have one dimension", values)
            self.enforce(values.numel() == rows.shape[1], "a and b have D elements", values, x)
        torch.addcmul(b, rows, a, out=as_matrix(self.out(0, x.shape), axis))


@register_operator("ElementwiseLinearGradient")
class ElementwiseLinearGradient(FloatOperator):
    """(dY, X, a) -> dX, da, db."""

    def RunOnDevice(self) -> None:
        dy, x, a = self.x(0), self.x(1), self.x(2)
        axis = self.axis(x, "axis", 1)
        rows = as_matrix(x, axis)
        self.enforce(a.numel() == rows.shape[1], "a has D elements", a, x)
        drows = dy.view(rows.shape)
        self.put(1, (drows * rows).sum(0))
        self.put(2, drows.sum(0))
        torch.mul(drows, a.view(-1), out=as_matrix(self.out(0, x.shape), axis))


@register_operator("NormalizePlanarYUV")
class NormalizePlanarYUV(FloatOperator):
    """(X: (N, C, H, W), mean: (1, C), deviation: (1, C)) -> (X - mean) / deviation.

    Follows NormalizePlanarYUVOp, caffe2/operators/norm_planar_yuv_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        mean, deviation = (self.x(i) for i in (1, 2))
        for values in (mean, deviation):
            self.enforce(values.dim() == 2, "mean and deviation have 2 dimensions", values)
        mean, deviation = (by_channel(self, one, x, "NCHW") for one in (mean, deviation))
        torch.sub(x, mean, out=self.out(0, x.shape)).div_(deviation)
