# SPDX-License-Identifier: Apache-2.0
"""Normalization by image and channel, group of channels, row, or neighbouring channels (LRN).

As in Caffe2, the moments that are returned have no gradients; the gradients are computed from them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.gradients.patterns import by_argument
from bridge.caffe2.operators.base.channels import channels_first, channels_last, require_per_channel
from bridge.caffe2.operators.base.checks import (
    FLOATS,
    axis_from_front,
    image_order,
    require,
    shaped_like,
)
from bridge.caffe2.operators.base.defined_mode import first_buffer
from bridge.caffe2.operators.layers.matrix_products import as_matrix


@operator(
    "InstanceNorm", inplace="0>0", outputs="1-3", gradient="$Gradient i0! i1 i2 g0 o1? o2? > 0 1 2"
)
def instance_norm(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, order: str = "NCHW"
) -> tuple[Tensor, Tensor, Tensor]:
    """Y = scale * (X - mean) / sqrt(var + epsilon) + bias, moments per image and channel.

    (X, scale, bias) -> Y and, if there are outputs for them, mean and 1 / deviation, both (N, C).
    Raises EnforceNotMet: scale or bias do not have one value per channel.
    Follows InstanceNormOp, caffe2/operators/instance_norm_op.h, PyTorch 1.8.1.
    """
    order = image_order(order)
    require(epsilon >= 0, "epsilon is not negative", epsilon)
    x = channels_first(x, order)
    require_per_channel(x, scale, bias)
    images = x.shape[:2]
    if not x.numel():
        return channels_last(torch.zeros_like(x), order), x.new_zeros(images), x.new_zeros(images)
    # Each channel is a group of its own.
    sizes = x.shape[0], x.shape[1], x.shape[2:].numel(), x.shape[1]
    y, mean, rstd = torch.native_group_norm(
        x.contiguous(), scale.view(-1), bias.view(-1), *sizes, epsilon
    )
    return channels_last(y, order), mean.detach(), rstd.detach()


@operator("GroupNorm", outputs="1|3", gradient="$Gradient g0 i0 i1 i2 o1 o2 > 0 1 2")
def group_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    *,
    group: int = 32,
    epsilon: float = 1e-5,
    order: str = "NCHW",
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Y = scale * (X - mean) / sqrt(var + epsilon) + bias, moments per image and channel group.

    (X, scale, bias) -> Y and, if there are three outputs, mean and 1 / deviation, both (N, group).
    Follows GroupNormOp, caffe2/operators/group_norm_op.h, PyTorch 1.8.1.
    """
    order = image_order(order)
    x = channels_first(x, order)
    require(x.shape[1] % group == 0, "the number of channels is divisible by group", x)
    require_per_channel(x, scale, bias)
    if x.shape[0] == 0:
        return channels_last(torch.empty_like(x), order), None, None
    elements = x.shape[2:].numel()
    sizes = x.shape[0], x.shape[1], elements, group
    y, mean, rstd = torch.native_group_norm(
        x.contiguous(), scale.view(-1), bias.view(-1), *sizes, epsilon
    )
    return channels_last(y, order), mean.detach(), rstd.detach()


@operator(
    "LayerNorm",
    types=FLOATS,
    inputs="1|3",
    gradient=by_argument(
        "elementwise_affine",
        0,
        "$Gradient g0 o0 o1 o2 i0 i1 > 0 1 2",
        "$Gradient g0 o0 o1 o2 i0 > 0",
    ),
)
@operator("C10LayerNorm_DontUseThisOpYet", types=FLOATS, inputs="1|3")
def layer_norm(
    x: Tensor,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    axis: int = 1,
    epsilon: float = 1e-5,
    elementwise_affine: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Y = (X - mean) / sqrt(var + epsilon), moments over the dimensions from `axis` on.

    X -> Y, mean, deviation; the moments have sizes (M..., 1). With `elementwise_affine` inputs 1
    and 2 are scale and bias of each element.
    Follows LayerNormOp, caffe2/operators/layer_norm_op.h, PyTorch 1.8.1.
    """
    require(x.dim() >= 2, "X has two dimensions or more", x)
    axis = axis_from_front(axis, x.dim())
    rows = x.flatten(axis)
    width = rows.shape[-1]
    factors: list[Tensor | None] = [None, None]
    if elementwise_affine:
        require(bias is not None, "inputs 1 and 2 are scale and bias with elementwise_affine")
        for i, values in enumerate((scale, bias)):
            assert values is not None
            require(values.numel() == width, "there is one value per element", values, x)
            factors[i] = values.view(-1)
    if not x.numel():
        moments = (*x.shape[:axis], 1)
        deviation = x.new_full(moments, epsilon**0.5)
        return torch.empty_like(x), x.new_zeros(moments), deviation
    y, mean, rstd = torch.native_layer_norm(rows, [width], factors[0], factors[1], epsilon)
    return shaped_like(y, x), mean, torch.reciprocal(rstd)


@operator("RMSNorm", types=FLOATS, gradient="$Gradient g0 i0 i1 o1 > 0 1 2")
def rms_norm(
    x: Tensor, scale: Tensor, bias: Tensor, *, axis: int = 1, eps: float = 0.0, out: Out = None
) -> tuple[Tensor, Tensor]:
    """Y = X / rms(X) * scale + bias, the root mean square from dimension `axis` on.

    (X, scale, bias) -> Y, 1 / rms (M...). `eps` is added to the mean square.
    Follows RMSNormOp, caffe2/operators/rms_norm_op.cc, PyTorch 1.8.1.
    """
    axis = axis_from_front(axis, x.dim())
    rows = as_matrix(x, axis)
    for values in (scale, bias):
        require(values.numel() == rows.shape[1], "there is one value per element", values, x)
    rrms = torch.rsqrt(rows.square().mean(1, keepdim=True) + eps)
    room = None if out is None else as_matrix(out[0], axis)
    y = torch.addcmul(bias.view(-1), rows * rrms, scale.view(-1), out=room)
    return y.view(x.shape) if out is None else out[0], rrms.view(x.shape[:axis]).detach()


def _normal_gradient(scaled: Tensor, unit: Tensor, rstd: Tensor, dims: list[int]) -> Tensor:
    """Return dX of unit = (X - mean) * rstd, moments over `dims`.

    `scaled` is the gradient of `unit`.
    """
    mean = scaled.mean(dims, keepdim=True)
    along = (scaled * unit).mean(dims, keepdim=True)
    return (scaled - mean - unit * along) * rstd


def _group_gradient(
    dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, scale: Tensor, sizes: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return dX, dscale, dbias by a function of torch, which has no gradient of its own."""
    moments = mean.view(sizes[0], sizes[3]), rstd.view(sizes[0], sizes[3])
    given = dy.contiguous(), x.contiguous(), *moments, scale.view(-1), *sizes, [True] * 3
    dx, dscale, dbias = torch.ops.aten.native_group_norm_backward(*given)
    return dx, dscale, dbias


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
    x, dy = (channels_first(one, order) for one in (x, shaped_like(dy, x)))
    require(scale.numel() == x.shape[1], "there is one value per channel", scale, x)
    if not x.numel():
        none = x.new_zeros(x.shape[1:2])
        return channels_last(torch.zeros_like(x), order), none, none.clone()
    sizes = (x.shape[0], x.shape[1], x.shape[2:].numel(), x.shape[1])
    if mean is None or rstd is None:
        _, mean, rstd = torch.native_group_norm(x.contiguous(), None, None, *sizes, epsilon)
    if not (x.requires_grad or dy.requires_grad or scale.requires_grad):
        dx, dscale, dbias = _group_gradient(dy, x, mean, rstd, scale, sizes)
        return channels_last(dx, order), dscale, dbias
    rows, drows = x.flatten(2), dy.flatten(2)
    mean, rstd = (one.view(*x.shape[:2], 1) for one in (mean, rstd))
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
    x, dy = (channels_first(one, order) for one in (x, shaped_like(dy, x)))
    n, channels = x.shape[:2]
    require(channels % group == 0, "the number of channels is divisible by group", x)
    if x.numel() and not (x.requires_grad or dy.requires_grad or scale.requires_grad):
        sizes = n, channels, x.shape[2:].numel(), group
        dx, dscale, dbias = _group_gradient(dy, x, mean, rstd, scale, sizes)
        return channels_last(dx, order), dscale, dbias
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
    axis = axis_from_front(axis, x.dim())
    sizes, rows = list(x.shape[axis:]), x.shape[:axis].numel()
    fits = mean.numel() == deviation.numel() == rows
    require(fits, "each row of X has a mean and a deviation", x, mean, deviation)
    if not elementwise_affine:
        scale = None
    else:
        require(scale is not None, "there is an input for the scale")
    factors = None if scale is None else scale.view(sizes)
    wanted = [True, scale is not None, scale is not None]
    moments = mean.view(-1, 1), torch.reciprocal(deviation.view(-1, 1))
    given = shaped_like(dy, x), x, sizes, *moments, factors, factors, wanted
    dx, dscale, dbias = torch.ops.aten.native_layer_norm_backward(*given)
    return (dx,) if scale is None else (dx, shaped_like(dscale, scale), shaped_like(dbias, scale))


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


def _summed(values: Tensor, size: int) -> Tensor:
    """Return the sum over the `size` nearest channels of each channel (N, C, H, W)."""
    channels = values.shape[1]
    size = min(size, 2 * channels + 1)  # which are all channels
    if size == 1:
        return values
    before = (size - 1) // 2
    padded = torch.constant_pad_nd(values, (0, 0, 0, 0, before, size - 1 - before))
    total = padded.narrow(1, 0, channels) + padded.narrow(1, 1, channels)
    for i in range(2, size):
        total = total.add_(padded.narrow(1, i, channels))
    return total


def _base(x: Tensor, size: int, alpha: float, bias: float) -> Tensor:
    """Return the base of the power; X: (N, C, H, W)."""
    require(size > 0, "size is positive", size)
    require(x.dim() == 4, "X has 4 dimensions", x)
    return (_summed(x * x, size) * (alpha / size)).add_(bias)


def _power(base: Tensor, beta: float) -> Tensor:
    """Return base^-beta; roots are faster than powers."""
    if beta != 0.75:
        return base.pow(-beta)
    root = torch.rsqrt(base)
    return root * torch.sqrt(root)


@operator("LRN", outputs="1-2", gradient="$Gradient i0 o0 g0 > 0")
def lrn(
    x: Tensor,
    *,
    size: int = 0,
    alpha: float = 0.0,
    beta: float = 0.0,
    bias: float = 1.0,
    order: str = "NCHW",
    outputs: OutputCount = 1,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """Y = X / (bias + alpha / size * sum of X^2 over the `size` nearest channels)^beta.

    X -> Y and, if there is a second output, the base of the power.
    Follows LRNOp, caffe2/operators/local_response_normalization_op.cc, PyTorch 1.8.1.
    """
    order = image_order(order)
    x = channels_first(x, order)
    room = first_buffer(out)
    base = _base(x, size, alpha, bias)
    if room is None:
        found = channels_last(x * _power(base, beta), order)
    else:
        torch.mul(x, _power(base, beta), out=channels_first(room, order))
        found = room
    return (found, channels_last(base, order).detach()) if outputs == 2 else (found,)


@operator("LRNGradient", defaults=lrn)
def lrn_gradient(
    x: Tensor,
    y: Tensor,
    dy: Tensor,
    *,
    size: int,
    alpha: float,
    beta: float,
    bias: float,
    order: str,
) -> Tensor:
    """(X, Y, dY) -> dX, the gradient of LRN; the same arguments."""
    order = image_order(order)
    x, y, dy = (channels_first(shaped_like(one, x), order) for one in (x, y, dy))
    base = _base(x, size, alpha, bias)
    around = _summed(y * dy / base, size) * (-2 * alpha * beta / size)
    return channels_last(torch.addcmul(dy * _power(base, beta), x, around), order)
