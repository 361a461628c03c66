# SPDX-License-Identifier: Apache-2.0
"""Moments (mean and variance) and its gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import axis_from_front, require
from bridge.caffe2.operators.reductions.reduce import kept_sizes


@operator("Moments", gradient="$Gradient g0 g1 i0 o0 > 0")
def moments(
    x: Tensor, *, axes: list[int] | None = None, keepdims: int = 1
) -> tuple[Tensor, Tensor]:
    """X -> mean, variance over `axes`, by default all; both are 0 for no elements.

    Follows MomentsOp, caffe2/operators/moments_op.h, PyTorch 1.8.1.
    """
    require(axes is None or all(axis >= 0 for axis in axes), "axes are not negative", axes)
    named = axes or range(x.dim())
    dims = sorted({axis_from_front(axis, x.dim()) for axis in named})
    if not dims:
        return x.clone(), torch.zeros_like(x)
    keep = bool(keepdims)
    if not x.numel():
        return x.sum(dims, keep), x.sum(dims, keep)
    mean = torch.mean(x, dims, True)
    variance = torch.mean(torch.square(x - mean), dims, keep)
    return mean if keep else mean.reshape(variance.shape), variance


@operator("MomentsGradient")
def moments_gradient(
    dmean: Tensor, dvariance: Tensor, x: Tensor, mean: Tensor, *, axes: list[int] | None = None
) -> Tensor:
    """(dmean, dvariance, X, mean) -> dX."""
    require(axes is None or all(axis >= 0 for axis in axes), "axes are not negative", axes)
    sizes = kept_sizes(x, axes or None)
    dmean, dvariance, mean = (one.reshape(sizes) for one in (dmean, dvariance, mean))
    share = mean.numel() / max(x.numel(), 1)
    return (dmean + 2 * (x - mean) * dvariance) * share
