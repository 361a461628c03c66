# SPDX-License-Identifier: Apache-2.0
"""SpatialBN, normalization by channel, and its gradient."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import add_pattern
from bridge.caffe2.operators.base.channels import channels_first, channels_last, require_per_channel
from bridge.caffe2.operators.base.checks import image_order, require, shaped_like
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.defined_mode import DefinedMode, first_buffer
from bridge.caffe2.operators.layers import layer_kernels


def _vector(values: Tensor, x: Tensor, name: str) -> Tensor:
    """Return a parameter of the channels of `x` (N, C, ...) in one dimension."""
    require(values.numel() == x.shape[1], f"{name} has one value per channel", values, x)
    return values if values.dim() == 1 else values.reshape(-1)


def _spatial_bn_gradient(maker: GradientMaker) -> None:
    maker.enforce(maker.has_argument("is_test"), "needs argument 'is_test'")
    is_test = maker.argument("is_test", 0)
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
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    order: str = "NCHW",
    num_batches: int = 1,
    defined: DefinedMode | None = None,
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
    Follows SpatialBNOp, caffe2/operators/spatial_batch_norm_op.h, PyTorch 1.8.1.
    """
    order = image_order(order)
    fits = outputs in (0, 1 if is_test else 5)
    require(fits, "there is one output in test, five in training", outputs)
    require(epsilon > 0, "epsilon is positive", epsilon)
    require(0 <= momentum <= 1, "momentum is in [0, 1]", momentum)
    x = channels_first(x, order)
    require(x.dim() >= 2 and x.shape[1] > 0, "X has a channel dimension", x)
    scale, bias = _vector(scale, x, "the scale"), _vector(bias, x, "the bias")
    if is_test:
        if x.shape[0] == 0:
            return channels_last(torch.empty_like(x), order), mean, var, mean, var
        mean, var = _vector(mean, x, "the mean"), _vector(var, x, "the variance")
        y = _in_test(x, (scale, bias, mean, var), epsilon, order, first_buffer(out))
        return (y,) if outputs == 1 else (y, mean, var, mean, torch.rsqrt(var + epsilon))
    channels = x.shape[1]
    running = [one if one.numel() == channels else x.new_zeros(channels) for one in (mean, var)]
    if x.shape[0] == 0:
        none = x.new_zeros(channels)
        return channels_last(torch.empty_like(x), order), *running, none, none.clone()
    if num_batches == 1:
        return _in_training(x, scale, bias, running, epsilon, momentum, order, out)
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
    return channels_last(y, order), *running, mean, torch.rsqrt(var + epsilon)


def _in_test(
    x: Tensor,
    factors: tuple[Tensor, Tensor, Tensor, Tensor],
    epsilon: float,
    order: str,
    out: Tensor | None,
) -> Tensor:
    """Return Y; the factors are scale, bias, mean and variance."""
    if order == "NCHW" and takes_kernels(x, *factors):
        y = torch.empty_like(x) if out is None else out
        return run_kernel(layer_kernels.normalize, x, y, *factors, epsilon, *_planes(x))
    scale, bias, mean, var = factors
    # As in Caffe2 the statistics have no gradients; torch refuses those that require them.
    y = torch.batch_norm(x, scale, bias, mean.detach(), var.detach(), False, 0.0, epsilon, False)
    return channels_last(y, order)


def _planes(x: Tensor) -> tuple[int, int, int]:
    """Return the numbers of images, of channels, and of elements of a channel."""
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


def _in_training(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    running: list[Tensor],
    epsilon: float,
    momentum: float,
    order: str,
    out: Out,
) -> tuple[Tensor, ...]:
    if out is None or out[1] is not running[0] or out[2] is not running[1]:
        out = None
        # Inputs are not to be written; torch has no gradients of the running statistics.
        mean, var = (one.detach().clone() for one in running)
    else:
        mean, var = out[1], out[2]
    count = x.numel() // x.shape[1]
    if order == "NCHW" and takes_kernels(x, scale, bias) and count > 1:
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
        y = channels_last(y, order)
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
    order: str = "NCHW",
    num_batches: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """(X, scale, dY, mean, 1 / deviation) -> dX, dscale, dbias.

    With `num_batches` > 1 inputs 5 and 6 are dscale and dbias summed over the batches.
    Follows SpatialBNGradientOp, caffe2/operators/spatial_batch_norm_op.h, PyTorch 1.8.1.
    """
    order = image_order(order)
    x, dy = (channels_first(one, order) for one in (x, shaped_like(dy, x)))
    require(x.dim() >= 3, "X has three dimensions or more", x)
    require_per_channel(x, scale, mean, rstd)
    if num_batches <= 1 and x.numel():
        dx, dscale, dbias = torch.ops.aten.native_batch_norm_backward(
            dy, x, scale, None, None, mean, rstd, True, 0.0, [True] * 3
        )
        return channels_last(dx, order), dscale, dbias
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
    return channels_last((dy - along) * (scale * rstd), order), dscale, dbias
