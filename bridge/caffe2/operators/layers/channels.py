# SPDX-License-Identifier: Apache-2.0
"""Operators with parameters or sums per channel of an image.

Follows channel_shuffle_op.cc, affine_channel_op.h, channel_stats_op.cc, batch_moments_op.cc,
channel_backprop_stats_op.cc, elementwise_linear_op.cc and norm_planar_yuv_op.cc in
caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import InPlace, OperatorType, Out, operator
from bridge.caffe2.gradients.patterns import by_argument
from bridge.caffe2.operators.base.channels import Order, along_channels, channel_sums
from bridge.caffe2.operators.base.checks import axis_from_front, require
from bridge.caffe2.operators.layers.matrix_products import as_matrix


@operator("ChannelShuffle", gradient="$Gradient g0 > 0")
@operator("ChannelShuffleGradient")
def channel_shuffle(
    x: Tensor, *, group: int = 1, order: Order, kind: OperatorType, out: Out = None
) -> Tensor:
    """X with its channels transposed as a matrix of `group` rows; for the gradient, of columns.

    Raises EnforceNotMet: the number of channels is not divisible by `group`.
    """
    channel = 1 if order.is_first else x.dim() - 1
    require(x.dim() >= 2, "X has a channel dimension", x)
    channels = x.shape[channel]
    require(channels % group == 0, "the number of channels is divisible by group", x)
    split = (group, channels // group)
    if kind == "ChannelShuffleGradient":
        split = split[::-1]
    parts = x.view(*x.shape[:channel], *split, *x.shape[channel + 1 :])
    turned = parts.transpose(channel, channel + 1)
    if out is None:
        return turned.reshape(x.shape)
    out.view(turned.shape).copy_(turned)
    return out


@operator(
    "AffineChannel",
    inplace="0>0",
    gradient=by_argument("is_learnable", 0, "$Gradient g0 i0 i1 > 0 1 2", "$Gradient g0 i1 > 0"),
)
def affine_channel(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    *,
    order: Order,
    is_learnable: bool = False,
    in_place: InPlace = {},  # noqa: B006
    out: Out = None,
) -> Tensor:
    """(X, scale, bias) -> scale * X + bias, per channel."""
    require(not (is_learnable and in_place), "is_learnable is not used in place")
    return torch.addcmul(order.along(bias, x), x, order.along(scale, x), out=out)


@operator("AffineChannelGradient", inplace="0>0", inputs="2-3", outputs="1|3")
def affine_channel_gradient(
    dy: Tensor, x: Tensor, scale: Tensor | None = None, *, order: Order, is_learnable: bool = False
) -> tuple[Tensor, ...]:
    """(dY, scale) -> dX; with `is_learnable` (dY, X, scale) -> dX, dscale, dbias."""
    if not is_learnable:
        return (dy * order.along(x, dy),)
    require(scale is not None, "X and the scale are given with is_learnable")
    assert scale is not None
    return dy * order.along(scale, dy), order.sums(dy * x), order.sums(dy)


@operator("ChannelStats", gradient="undefined")
def channel_stats(x: Tensor, *, order: Order) -> tuple[Tensor, Tensor]:
    """X -> the sums of X and of X^2 per channel (C)."""
    return order.sums(x), order.sums(x * x)


@operator("BatchMoments", gradient="$Gradient g0 g1 i0 > 0")
def batch_moments(x: Tensor, *, order: Order) -> tuple[Tensor, Tensor]:
    """X -> the means of X and of X^2 by channel (C)."""
    sums, squares = channel_stats(x, order=order)
    share = sums.numel() / max(x.numel(), 1)
    return sums * share, squares * share


@operator("BatchMomentsGradient")
def batch_moments_gradient(
    dmean: Tensor, dsquares: Tensor, x: Tensor, *, order: Order, out: Out = None
) -> Tensor:
    """(dmean: (C), dsquares: (C), X) -> dX."""
    share = dmean.numel() / max(x.numel(), 1)
    dmean, dsquares = (order.along(one, x) for one in (dmean, dsquares))
    return torch.mul(torch.addcmul(dmean, x, dsquares, value=2), share, out=out)


@operator("ChannelBackpropStats", gradient="undefined")
def channel_backprop_stats(
    x: Tensor, mean: Tensor, rstd: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor]:
    """(X, mean, 1 / deviation, dY) -> dscale, dbias per channel (C) of X: (N, C, ...)."""
    mean, rstd = (along_channels(one, x) for one in (mean, rstd))
    return channel_sums((x - mean) * rstd * dy), channel_sums(dy)


@operator("ElementwiseLinear", gradient="$Gradient g0 i0 i1 > 0 1 2")
def elementwise_linear(
    x: Tensor, a: Tensor, b: Tensor, *, axis: int = 1, out: Out = None
) -> Tensor:
    """(X: (N..., D...), a: (D), b: (D)) -> a * X + b, rounded twice; `axis`: the start of D."""
    axis = axis_from_front(axis, x.dim())
    rows = as_matrix(x, axis)
    for values in (a, b):
        require(values.dim() == 1, "a and b have one dimension", values)
        require(values.numel() == rows.shape[1], "a and b have D elements", values, x)
    if out is None:
        return (rows * a + b).view(x.shape)
    torch.mul(rows, a, out=as_matrix(out, axis)).add_(b)
    return out


@operator("ElementwiseLinearGradient")
def elementwise_linear_gradient(
    dy: Tensor, x: Tensor, a: Tensor, *, axis: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """(dY, X, a) -> dX, da, db."""
    rows = as_matrix(x, axis_from_front(axis, x.dim()))
    require(a.dim() == 1 and a.numel() == rows.shape[1], "a has D elements", a, x)
    drows = dy.view(rows.shape)
    return (drows * a.view(-1)).view(x.shape), (drows * rows).sum(0), drows.sum(0)


@operator("NormalizePlanarYUV", inplace="0>0")
def normalize_planar_yuv(x: Tensor, mean: Tensor, deviation: Tensor, *, out: Out = None) -> Tensor:
    """(X: (N, C, H, W), mean: (1, C), deviation: (1, C)) -> (X - mean) / deviation."""
    require(x.dim() == 4, "X has 4 dimensions", x)
    for values in (mean, deviation):
        require(values.dim() == 2, "mean and deviation have 2 dimensions", values)
    mean, deviation = (along_channels(one, x) for one in (mean, deviation))
    return torch.div(x - mean, deviation, out=out)
