# SPDX-License-Identifier: Apache-2.0
"""SpatialBN, normalization by channel, and Dropout: layers with one mode in test, one in training.

Follows spatial_batch_norm_op.h and dropout_op.cc in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments, float32_value
from bridge.caffe2.execution.function_operator import Out, OutputCount, RandomGenerator, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import add_pattern
from bridge.caffe2.operators.base.channels import Order, require_per_channel
from bridge.caffe2.operators.base.checks import BOOL, require, shaped_like
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.layers import layer_kernels


def first_buffer(out: Out) -> Tensor | None:
    """Return the buffer of the first output; `out` is a tuple if there are several."""
    return out[0] if isinstance(out, tuple) else out


def _is_test(maker: GradientMaker) -> bool:
    """Return the argument `is_test` of an operator whose gradient is made, which it must have."""
    maker.enforce(maker.has_argument("is_test"), "needs argument 'is_test'")
    return bool(maker.argument("is_test", 0))


class ChannelRules:
    """The arguments `epsilon` (1e-5), `momentum` (0.9) of the running statistics, and `order`."""

    takes = "float epsilon, float momentum, str order"

    def __init__(self, arguments: Arguments) -> None:
        self.epsilon: float = arguments.single("epsilon", float32_value(1e-5))
        self.momentum: float = arguments.single("momentum", float32_value(0.9))
        self.order = Order(arguments)
        require(self.epsilon > 0, "epsilon is positive", self.epsilon)
        require(0 <= self.momentum <= 1, "momentum is in [0, 1]", self.momentum)


def _vector(values: Tensor, x: Tensor, name: str) -> Tensor:
    """Return a parameter of the channels of `x` (N, C, ...) in one dimension."""
    require(values.numel() == x.shape[1], f"{name} has one value per channel", values, x)
    return values if values.dim() == 1 else values.reshape(-1)


def _spatial_bn_gradient(maker: GradientMaker) -> None:
    is_test = _is_test(maker)
    expected = 1 if is_test else 5
    maker.enforce(len(maker.op.input) == 5, "needs 5 inputs")
    maker.enforce(len(maker.op.output) == expected, f"needs {expected} outputs")
    add_pattern(f"$Gradient i0 i1 g0 {'i3 i4' if is_test else 'o3 o4'} > 0 1 2", maker)


@operator(
    "SpatialBN",
    inplace="0>0,3>1!,4>2!,5>3",
    inputs="5|7",
    outputs="1|5",
    gradient=_spatial_bn_gradient,
)
def spatial_bn(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    sums: Tensor | None = None,
    sumsq: Tensor | None = None,
    *,
    is_test: int,
    rules: ChannelRules,
    num_batches: int = 1,
    outputs: OutputCount = 5,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """Y = scale * (X - mean) / sqrt(var + epsilon) + bias, per channel.

    With `is_test`: (X, scale, bias, mean, var) -> Y. Otherwise the mean and variance are those of
    X, or are computed from sums over `num_batches` batches (inputs 5 and 6); the outputs are Y,
    running mean and variance in place of inputs 3 and 4, the mean, and 1 / the deviation.
    `is_test` is required.
    Raises EnforceNotMet: a parameter does not have one value per channel, or the number of outputs
    is wrong.
    """
    order, epsilon, momentum = rules.order, rules.epsilon, rules.momentum
    fits = outputs in (0, 1 if is_test else 5)
    require(fits, "there is one output in test, five in training", outputs)
    x = order.first(x)
    require(x.dim() >= 2 and x.shape[1] > 0, "X has a channel dimension", x)
    scale, bias = _vector(scale, x, "the scale"), _vector(bias, x, "the bias")
    if is_test:
        if x.shape[0] == 0:
            return order.last(torch.empty_like(x)), mean, var, mean, var
        mean, var = _vector(mean, x, "the mean"), _vector(var, x, "the variance")
        y = _in_test(x, (scale, bias, mean, var), rules, first_buffer(out))
        return (y,) if outputs == 1 else (y, mean, var, mean, torch.rsqrt(var + epsilon))
    channels = x.shape[1]
    running = [one if one.numel() == channels else x.new_zeros(channels) for one in (mean, var)]
    if x.shape[0] == 0:
        none = x.new_zeros(channels)
        return order.last(torch.empty_like(x)), *running, none, none.clone()
    if num_batches == 1:
        return _in_training(x, scale, bias, running, rules, out)
    require(sums is not None and sumsq is not None, "inputs 5 and 6 are sums over the batches")
    assert sums is not None and sumsq is not None
    count = num_batches * x.numel() // channels
    mean = _vector(sums, x, "the sum") / count
    var = _vector(sumsq, x, "the sum of squares") / count - mean.square()
    unbiased = var * (count / (count - 1) if count > 1 else float("inf"))
    if mean.requires_grad or var.requires_grad:  # torch's function has no gradients of these
        shape = [1, -1, *[1] * (x.dim() - 2)]
        mean_of, rstd, scale, bias = (
            one.view(shape) for one in (mean, torch.rsqrt(var + epsilon), scale, bias)
        )
        y = (x - mean_of) * rstd * scale + bias
    else:
        y = torch.batch_norm(x, scale, bias, mean, var, False, 0.0, epsilon, False)
    running = [
        one * momentum + found * (1 - momentum)
        for one, found in zip(running, (mean, unbiased), strict=True)
    ]
    return order.last(y), *running, mean, torch.rsqrt(var + epsilon)


def _in_test(
    x: Tensor, factors: tuple[Tensor, ...], rules: ChannelRules, out: Tensor | None
) -> Tensor:
    """Return Y; the factors are scale, bias, mean and variance."""
    epsilon = rules.epsilon
    if rules.order.is_first and takes_kernels(x, *factors):
        y = torch.empty_like(x) if out is None else out
        return run_kernel(layer_kernels.normalize, x, y, *factors, epsilon, *_planes(x))
    scale, bias, mean, var = factors
    # As in Caffe2 the statistics have no gradients; torch refuses those that require them.
    y = torch.batch_norm(x, scale, bias, mean.detach(), var.detach(), False, 0.0, epsilon, False)
    return rules.order.last(y)


def _planes(x: Tensor) -> tuple[int, int, int]:
    """Return the numbers of images, of channels, and of elements of a channel."""
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


def _in_training(
    x: Tensor, scale: Tensor, bias: Tensor, running: list[Tensor], rules: ChannelRules, out: Out
) -> tuple[Tensor, ...]:
    epsilon, momentum = rules.epsilon, rules.momentum
    if out is None or out[1] is not running[0] or out[2] is not running[1]:
        out = None
        # Inputs are not to be written; torch has no gradients of the running statistics.
        mean, var = (one.detach().clone() for one in running)
    else:
        mean, var = out[1], out[2]
    count = x.numel() // x.shape[1]
    if rules.order.is_first and takes_kernels(x, scale, bias) and count > 1:
        own, spread = torch.empty_like(scale), torch.empty_like(scale)
        own = run_kernel(layer_kernels.moments, x, own, spread, *_planes(x))
        y = torch.empty_like(x) if out is None or out[0] is None else out[0]
        y = run_kernel(
            layer_kernels.normalize, x, y, scale, bias, own, spread, epsilon, *_planes(x)
        )
        rstd = torch.rsqrt(spread + epsilon)
        mean = mean.mul_(momentum).add_(own, alpha=1 - momentum)
        var = var.mul_(momentum).add_(spread, alpha=(1 - momentum) * count / (count - 1))
    else:
        settings = True, 1 - momentum, epsilon
        y, own, rstd = torch.native_batch_norm(x, scale, bias, mean, var, *settings)
        y = rules.order.last(y)
    return y, mean, var, own, rstd


@operator("SpatialBNGradient", inplace="5>1,5>2", inputs="5|7")
def spatial_bn_gradient(
    x: Tensor,
    scale: Tensor,
    dy: Tensor,
    mean: Tensor,
    rstd: Tensor,
    dscale: Tensor | None = None,
    dbias: Tensor | None = None,
    *,
    order: Order,
    num_batches: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """(X, scale, dY, mean, 1 / deviation) -> dX, dscale, dbias.

    With `num_batches` > 1 inputs 5 and 6 are dscale and dbias summed over the batches.
    """
    x, dy = (order.first(one) for one in (x, shaped_like(dy, x)))
    require(x.dim() >= 3, "X has three dimensions or more", x)
    require_per_channel(x, scale, mean, rstd)
    if num_batches <= 1 and x.numel():
        dx, dscale, dbias = torch.ops.aten.native_batch_norm_backward(
            dy, x, scale, None, None, mean, rstd, True, 0.0, [True] * 3
        )
        return order.last(dx), dscale, dbias
    shape = [1, -1, *[1] * (x.dim() - 2)]
    scale, mean, rstd = (one.view(shape) for one in (scale, mean, rstd))
    unit = (x - mean) * rstd
    if num_batches > 1:
        require(dscale is not None and dbias is not None, "inputs 5 and 6 are sums over batches")
        assert dscale is not None and dbias is not None
        # Without examples the gradients are 0, regardless of the sums.
        share = 1 / num_batches if x.shape[0] else 0.0
        dscale, dbias = dscale * share, dbias * share
    else:
        dims = [0, *range(2, x.dim())]
        dscale, dbias = (dy * unit).sum(dims), dy.sum(dims)
    count = max(x.numel() // x.shape[1], 1)
    along = torch.addcmul(dbias.view(shape), unit, dscale.view(shape)).div(count)
    return order.last((dy - along) * (scale * rstd)), dscale, dbias


class DefinedMode:
    """The argument `is_test` of a definition, which implies the number of outputs.

    A module whose mode is set passes another `is_test` to the function, with the same outputs.
    """

    takes = "int is_test"

    def __init__(self, arguments: Arguments) -> None:
        self.is_test = bool(arguments.single("is_test", 0))


def _dropout_gradient(maker: GradientMaker) -> None:
    add_pattern("DropoutGrad g0 > 0" if _is_test(maker) else "DropoutGrad g0 o1 > 0", maker)


@operator("Dropout", inplace="0>0", outputs="1-2", effects=("random",), gradient=_dropout_gradient)
def dropout(
    x: Tensor,
    *,
    is_test: int,
    ratio: float = 0.5,
    defined: DefinedMode | None = None,
    generator: RandomGenerator = None,
    outputs: OutputCount = 2,
    out: Out = None,
) -> tuple[Tensor, Tensor | None]:
    """Y = X in test; in training X / (1 - ratio) or, with probability `ratio`, 0.

    X -> Y, and in training a bool mask, True where X was kept. `is_test` is required.
    """
    require(0 <= ratio < 1, "ratio is in [0, 1)", ratio)
    room = first_buffer(out)
    if is_test:
        return x if room is None or room is x else room.copy_(x), None
    has_room = outputs in (0, 2) or (defined is not None and defined.is_test)
    require(has_room, "in training there is an output for the mask", outputs)
    mask = torch.rand(x.shape, generator=generator, dtype=x.dtype, device=x.device) >= ratio
    return torch.mul(x * mask, 1 / (1 - ratio), out=room), mask


@operator("DropoutGrad", inplace="0>0", types={"mask": BOOL}, defaults=dropout)
def dropout_grad(
    dy: Tensor, mask: Tensor | None = None, *, is_test: int = 0, ratio: float, out: Out = None
) -> Tensor:
    """dX = dY in test; in training (dY, mask) -> dY / (1 - ratio) where it was kept, else 0."""
    require(0 <= ratio < 1, "ratio is in [0, 1)", ratio)
    if is_test:
        return dy if out is None or out is dy else out.copy_(dy)
    require(mask is not None, "in training the mask is given")
    assert mask is not None
    require(mask.numel() == dy.numel(), "the mask has the shape of dY", mask, dy)
    return torch.mul(dy * mask.view(dy.shape), 1 / (1 - ratio), out=out)
