# SPDX-License-Identifier: Apache-2.0
"""Normalization by image and channel, group of channels, row, or neighbouring channels (LRN).

As in Caffe2, the moments that are returned have no gradients; the gradients are computed from them.
Follows instance_norm_op.h, group_norm_op.h, layer_norm_op.h, rms_norm_op.h and
local_response_normalization_op.cc in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.gradients.patterns import by_argument
from bridge.caffe2.operators.base.channels import Order, require_per_channel
from bridge.caffe2.operators.base.checks import FLOATS, axis_from_front, require, shaped_like
from bridge.caffe2.operators.layers.batch_normalization import first_buffer
from bridge.caffe2.operators.layers.matrix_products import as_matrix


@operator(
    "InstanceNorm", inplace="0>0", outputs="1-3", gradient="$Gradient i0! i1 i2 g0 o1? o2? > 0 1 2"
)
def instance_norm(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, order: Order
) -> tuple[Tensor, Tensor, Tensor]:
    """Y = scale * (X - mean) / sqrt(var + epsilon) + bias, moments per image and channel.

    (X, scale, bias) -> Y and, if there are outputs for them, mean and 1 / deviation, both (N, C).
    """
    require(epsilon >= 0, "epsilon is not negative", epsilon)
    x = order.first(x)
    require_per_channel(x, scale, bias)
    if not x.numel():
        none = x.new_zeros(x.shape[:2])
        return order.last(torch.zeros_like(x)), none, none.clone()
    return _normalized(x, scale, bias, x.shape[1], epsilon, order)


def _sizes(x: Tensor, group: int) -> tuple[int, int, int, int]:
    """Return the sizes of X (N, C, ...) and the number of groups, as torch takes them."""
    return x.shape[0], x.shape[1], x.shape[2:].numel(), group


def _normalized(
    x: Tensor, scale: Tensor, bias: Tensor, group: int, epsilon: float, order: Order
) -> tuple[Tensor, Tensor, Tensor]:
    """Return Y, mean and 1 / deviation of X (N, C, ...) by groups of channels."""
    factors = scale.view(-1), bias.view(-1)
    y, mean, rstd = torch.native_group_norm(x.contiguous(), *factors, *_sizes(x, group), epsilon)
    return order.last(y), mean.detach(), rstd.detach()


@operator("GroupNorm", outputs="1|3", gradient="$Gradient g0 i0 i1 i2 o1 o2 > 0 1 2")
def group_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    *,
    group: int = 32,
    epsilon: float = 1e-5,
    order: Order,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Y = scale * (X - mean) / sqrt(var + epsilon) + bias, moments per image and channel group.

    (X, scale, bias) -> Y and, if there are three outputs, mean and 1 / deviation, both (N, group).
    """
    x = order.first(x)
    require(x.shape[1] % group == 0, "the number of channels is divisible by group", x)
    require_per_channel(x, scale, bias)
    if x.shape[0] == 0:
        return order.last(torch.empty_like(x)), None, None
    return _normalized(x, scale, bias, group, epsilon, order)


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
    dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, scale: Tensor, group: int, order: Order
) -> tuple[Tensor, Tensor, Tensor]:
    """Return dX, dscale, dbias of groups of channels of X (N, C, ...)."""
    if x.numel() and not (x.requires_grad or dy.requires_grad or scale.requires_grad):
        # torch's function has no gradient of its own
        moments = mean.view(x.shape[0], group), rstd.view(x.shape[0], group)
        given = dy.contiguous(), x.contiguous(), *moments, scale.view(-1), *_sizes(x, group)
        dx, dscale, dbias = torch.ops.aten.native_group_norm_backward(*given, [True] * 3)
        return order.last(dx), dscale, dbias
    split = (x.shape[0], group, x.shape[1] // group, -1)
    rows, drows = x.reshape(split), dy.reshape(split)
    mean, rstd = (one.view(x.shape[0], group, 1, 1) for one in (mean, rstd))
    unit = (rows - mean) * rstd
    dx = _normal_gradient(drows * scale.view(1, group, -1, 1), unit, rstd, [2, 3])
    dscale, dbias = (one.sum((0, 3)).view(-1) for one in (drows * unit, drows))
    return order.last(dx.view(x.shape)), dscale, dbias


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
    order: Order,
) -> tuple[Tensor, Tensor, Tensor]:
    """(X, scale, bias, dY, optionally mean, 1 / deviation) -> dX, dscale, dbias."""
    require(epsilon >= 0, "epsilon is not negative", epsilon)
    x, dy = (order.first(one) for one in (x, shaped_like(dy, x)))
    require_per_channel(x, scale)
    if not x.numel():
        none = x.new_zeros(x.shape[1:2])
        return order.last(torch.zeros_like(x)), none, none.clone()
    group = x.shape[1]
    if mean is None or rstd is None:
        sizes = _sizes(x, group)
        _, mean, rstd = torch.native_group_norm(x.contiguous(), None, None, *sizes, epsilon)
    return _group_gradient(dy, x, mean, rstd, scale, group, order)


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
    order: Order,
) -> tuple[Tensor, Tensor, Tensor]:
    """(dY, X, scale, bias, mean, 1 / deviation) -> dX, dscale, dbias."""
    x, dy = (order.first(one) for one in (x, shaped_like(dy, x)))
    require(x.shape[1] % group == 0, "the number of channels is divisible by group", x)
    return _group_gradient(dy, x, mean, rstd, scale, group, order)


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
    """(dY, X, scale, 1 / rms) -> dX, dscale, dbias."""
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


class Neighbours:
    """The arguments of LRN, `size`, `alpha`, `beta` (0), `bias` (1) and `order`."""

    takes = "int size, float alpha, float beta, float bias, str order"

    def __init__(self, arguments: Arguments) -> None:
        self.size: int = arguments.single("size", 0)
        self.alpha: float = arguments.single("alpha", 0.0)
        self.beta: float = arguments.single("beta", 0.0)
        self.bias: float = arguments.single("bias", 1.0)
        self.order = Order(arguments)

    def base(self, x: Tensor) -> Tensor:
        """Return the base of the power; X: (N, C, H, W)."""
        require(self.size > 0, "size is positive", self.size)
        require(x.dim() == 4, "X has 4 dimensions", x)
        return (_summed(x * x, self.size) * (self.alpha / self.size)).add_(self.bias)


def _power(base: Tensor, beta: float) -> Tensor:
    """Return base^-beta; roots are faster than powers."""
    if beta != 0.75:
        return base.pow(-beta)
    root = torch.rsqrt(base)
    return root * torch.sqrt(root)


@operator("LRN", outputs="1-2", gradient="$Gradient i0 o0 g0 > 0")
def lrn(
    x: Tensor, *, around: Neighbours, outputs: OutputCount = 1, out: Out = None
) -> tuple[Tensor, ...]:
    """Y = X / (bias + alpha / size * sum of X^2 over the `size` nearest channels)^beta.

    X -> Y and, if there is a second output, the base of the power.
    """
    order = around.order
    x = order.first(x)
    found = first_buffer(out)
    base = around.base(x)
    if found is None:
        found = order.last(x * _power(base, around.beta))
    else:
        torch.mul(x, _power(base, around.beta), out=order.first(found))
    return (found, order.last(base).detach()) if outputs == 2 else (found,)


@operator("LRNGradient")
def lrn_gradient(x: Tensor, y: Tensor, dy: Tensor, *, around: Neighbours) -> Tensor:
    """(X, Y, dY) -> dX."""
    x, y, dy = (around.order.first(shaped_like(one, x)) for one in (x, y, dy))
    base, size, beta = around.base(x), around.size, around.beta
    shared = _summed(y * dy / base, size) * (-2 * around.alpha * beta / size)
    return around.order.last(torch.addcmul(dy * _power(base, beta), x, shared))
