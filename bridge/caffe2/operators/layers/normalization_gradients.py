# SPDX-License-Identifier: Apache-2.0
"""Gradients of the normalizations, from the moments returned by them."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.checks import FLOATS, axis_from_front, image_order, require
from bridge.caffe2.operators.layers.matrix_products import as_matrix
from bridge.caffe2.operators.layers.normalization import (
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)


def _normal_gradient(scaled: Tensor, unit: Tensor, rstd: Tensor, dims: list[int]) -> Tensor:
    """Return dX of unit = (X - mean) * rstd, moments over `dims`.

    `scaled` is the gradient of `unit`.
    """
    mean = scaled.mean(dims, keepdim=True)
    along = (scaled * unit).mean(dims, keepdim=True)
    return (scaled - mean - unit * along) * rstd


@operator("InstanceNormGradient", inputs="4-6", defaults=instance_norm)
def instance_norm_gradient(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    dy: Tensor,
    mean: Tensor | None = None,
    rstd: Tensor | None = None,
    *,
    epsilon: float,
    order: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """(X, scale, bias, dY, optionally mean, 1 / deviation) -> dX, dscale, dbias.

    Follows InstanceNormGradientOp, caffe2/operators/instance_norm_gradient_op.cc, PyTorch 1.8.1.
    """
    require(epsilon >= 0, "epsilon is not negative", epsilon)
    order = image_order(order)
    x, dy = channels_first(x, order), channels_first(dy, order)
    require(scale.numel() == x.shape[1], "there is one value per channel", scale, x)
    if not x.numel():
        none = x.new_zeros(x.shape[1:2])
        return channels_last(torch.zeros_like(x), order), none, none.clone()
    rows, drows = x.flatten(2), dy.flatten(2)
    if mean is not None and rstd is not None:
        mean, rstd = (one.view(*x.shape[:2], 1) for one in (mean, rstd))
    else:
        var, mean = torch.var_mean(rows, 2, correction=0, keepdim=True)
        rstd = torch.rsqrt(var + epsilon)
    unit = (rows - mean) * rstd
    dx = _normal_gradient(drows * scale.view(1, -1, 1), unit, rstd, [2])
    dscale, dbias = (drows * unit).sum((0, 2)), drows.sum((0, 2))
    return channels_last(dx.view(x.shape), order), dscale, dbias


@operator("GroupNormGradient", defaults=group_norm)
def group_norm_gradient(
    dy: Tensor,
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    rstd: Tensor,
    *,
    group: int,
    order: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """(dY, X, scale, bias, mean, 1 / deviation) -> dX, dscale, dbias.

    Follows GroupNormGradientOp, caffe2/operators/group_norm_op.h, PyTorch 1.8.1.
    """
    order = image_order(order)
    dy, x = channels_first(dy, order), channels_first(x, order)
    n, channels = x.shape[:2]
    require(channels % group == 0, "the number of channels is divisible by group", x)
    split = (n, group, channels // group, -1)
    rows, drows = x.reshape(split), dy.reshape(split)
    mean, rstd = (one.view(n, group, 1, 1) for one in (mean, rstd))
    unit = (rows - mean) * rstd
    dx = _normal_gradient(drows * scale.view(1, group, -1, 1), unit, rstd, [2, 3])
    dscale, dbias = (one.sum((0, 3)).view(-1) for one in (drows * unit, drows))
    return channels_last(dx.view(x.shape), order), dscale, dbias


@operator("LayerNormGradient", inputs="5-*", outputs="1|3", defaults=layer_norm)
def layer_norm_gradient(
    dy: Tensor,
    y: Tensor,
    mean: Tensor,
    deviation: Tensor,
    x: Tensor,
    scale: Tensor | None = None,
    *,
    axis: int,
    elementwise_affine: bool,
) -> tuple[Tensor, ...]:
    """(dY, Y, mean, deviation, X, optionally scale) -> dX, optionally dscale, dbias.

    Scale and its gradients are used with `elementwise_affine`.
    Follows LayerNormGradientOp, caffe2/operators/layer_norm_op.h, PyTorch 1.8.1.
    """
    rows = as_matrix(x, axis_from_front(axis, x.dim()))
    drows = dy.view(rows.shape)
    rstd = torch.reciprocal(deviation.view(-1, 1))
    unit = (rows - mean.view(-1, 1)) * rstd
    if not elementwise_affine:
        return (_normal_gradient(drows, unit, rstd, [1]).view(x.shape),)
    require(scale is not None, "there is an input for the scale")
    assert scale is not None
    dx = _normal_gradient(drows * scale.view(1, -1), unit, rstd, [1])
    dscale, dbias = (one.sum(0).view(scale.shape) for one in (drows * unit, drows))
    return dx.view(x.shape), dscale, dbias


@operator("RMSNormGradient", types=FLOATS, defaults=rms_norm)
def rms_norm_gradient(
    dy: Tensor, x: Tensor, scale: Tensor, rrms: Tensor, *, axis: int
) -> tuple[Tensor, Tensor, Tensor]:
    """(dY, X, scale, 1 / rms) -> dX, dscale, dbias.

    Follows RMSNormGradientOp, caffe2/operators/rms_norm_op.h, PyTorch 1.8.1.
    """
    rows = as_matrix(x, axis_from_front(axis, x.dim()))
    drows, rrms = dy.view(rows.shape), rrms.view(-1, 1)
    unit, scaled = rows * rrms, drows * scale.view(1, -1)
    along = (scaled * unit).mean(1, keepdim=True)
    dx = (scaled - unit * along) * rrms
    dscale, dbias = (one.sum(0).view(scale.shape) for one in (drows * unit, drows))
    return dx.view(x.shape), dscale, dbias
