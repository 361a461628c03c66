# SPDX-License-Identifier: Apache-2.0
"""Unary elementwise functions with arguments, or of several torch functions."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import (
    FLOATS,
    INTS,
    LARGEST,
    NUMBERS,
    require,
    require_range,
)
from bridge.caffe2.operators.base.gradients import clamped


@operator("Cube", types=NUMBERS, gradient="CubeGradient g0 i0 > 0")
def cube(x: Tensor, *, out: Out = None) -> Tensor:
    """The third power of each element."""
    return torch.mul(x * x, x, out=out)


@operator("Cbrt", inplace="0>0", gradient="CbrtGradient g0 o0 > 0")
def cbrt(x: Tensor, *, out: Out = None) -> Tensor:
    """The real cube root of each element."""
    root = torch.pow(torch.abs(x).double(), 1 / 3).float()
    return torch.copysign(root, x, out=out)


@operator("Mod", inplace="0>0", types=INTS)
def mod(
    x: Tensor, *, divisor: int = 0, sign_follow_divisor: bool = False, out: Out = None
) -> Tensor:
    """The remainder by `divisor`, with the sign of the element, or that of the divisor."""
    require(divisor != 0, "the argument divisor is not 0")
    if sign_follow_divisor:
        return torch.remainder(x, divisor, out=out)
    return torch.fmod(x, divisor, out=out)


@operator("IsNaN", types=FLOATS)
def is_nan(x: Tensor, *, out: Out = None) -> Tensor:
    """1 where an element is NaN, else 0, as uint8."""
    found = torch.isnan(x)
    return found.to(torch.uint8) if out is None else out.copy_(found)


@operator("ReplaceNaN", inplace="0>0", types=FLOATS, gradient="undefined")
def replace_nan(x: Tensor, *, value: float = 0.0, out: Out = None) -> Tensor:
    """X with NaN replaced by `value`."""
    return torch.nan_to_num(x, value, float("inf"), float("-inf"), out=out)


@operator("Scale", inplace="0>0", types=FLOATS, gradient="Scale g0 > 0")
def scale_(x: Tensor, *, scale: float = 1.0, out: Out = None) -> Tensor:
    """Each element times `scale`."""
    return torch.mul(x, scale, out=out)


@operator("HardSigmoid", inplace="0>0", gradient="HardSigmoidGradient o0 g0 > 0")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5, out: Out = None) -> Tensor:
    """y = alpha * x + beta, clamped to [0, 1]."""
    return clamped(x * alpha + beta, 0, 1, out)


@operator("ReluN", inplace="0>0", gradient="ReluNGradient o0 g0 > 0")
def relu_n(x: Tensor, *, n: float = 6.0, out: Out = None) -> Tensor:
    """y = min(max(x, 0), n)."""
    require(n > 0, "n is positive", n)
    return clamped(x, 0, n, out)


@operator("Clip", inplace="0>0", gradient="ClipGradient o0 g0 > 0")
def clip(x: Tensor, *, min: float = -LARGEST, max: float = LARGEST, out: Out = None) -> Tensor:
    """Each element clamped to [min, max]; the gradient is 0 at the limits."""
    return clamped(x, min, max, out)


@operator(
    "EnsureClipped", inplace="0>0", types={"indices": INTS, "gradient": None}, gradient="undefined"
)
def ensure_clipped(
    x: Tensor,
    indices: Tensor | None = None,
    gradient: Tensor | None = None,
    *,
    min: float = -LARGEST,
    max: float = LARGEST,
) -> Tensor:
    """Clip in place; with indices and a gradient, only rows at the indices."""
    clipped = torch.clamp(x, min, max)
    if indices is None:
        return clipped
    n = x.shape[0]
    require(
        gradient is not None
        and gradient.shape[: indices.dim()] == indices.shape
        and gradient.shape[indices.dim() :].numel() == x.shape[1:].numel(),
        "the gradient has one row per index",
        gradient,
        indices,
    )
    places = indices.reshape(-1).long()
    require_range("the indices", places, n)
    return x.index_copy(0, places, clipped.index_select(0, places))


@operator("ClipTensorByScaling", inplace="0>0", gradient="undefined")
def clip_tensor_by_scaling(
    x: Tensor,
    norm: Tensor,
    additional_threshold: Tensor | None = None,
    *,
    threshold: float = 0.0,
    out: Out = None,
) -> Tensor:
    """X scaled down by threshold / norm, if the norm exceeds the threshold.

    The additional threshold, if there is one, multiplies the threshold.
    """
    require(x.numel() > 0, "X is not empty", x)
    require(norm.numel() == 1, "the norm has one element", norm)
    require(threshold > 0, "the argument threshold is positive", threshold)
    most: Tensor | float = threshold
    if additional_threshold is not None:
        fits = additional_threshold.numel() == 1
        require(fits, "the factor of the threshold has one element", additional_threshold)
        most = additional_threshold.view(()) * threshold
    norm = norm.view(())
    factor = torch.where(norm > most, most / norm, norm.new_ones(()))
    return torch.mul(x, factor, out=out)
