# SPDX-License-Identifier: Apache-2.0
"""Sums over dimensions: weighted (ReduceFrontWeightedSum), or to the sizes of another tensor."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import FLOATS, require
from bridge.caffe2.operators.elementwise.legacy_broadcast import aligned, axis_of


@operator(
    "ReduceFrontWeightedSum",
    gradient="Shape i0 > _o0+_dims; ReduceFrontWeightedSumGradient i1 g0 _o0+_dims > 0",
)
def reduce_front_weighted_sum(x: Tensor, weights: Tensor, *, num_reduce_dim: int = 1) -> Tensor:
    """The sum of the rows of X times the weights."""
    n = num_reduce_dim
    require(0 <= n <= x.dim(), f"num_reduce_dim is at most {x.dim()}, the dimensions of X", n)
    rows = x.reshape(math.prod(x.shape[:n]), math.prod(x.shape[n:]))
    fits = weights.dim() == n and weights.numel() == rows.shape[0]
    require(
        fits, "there is one weight per row, in as many dimensions as are reduced", weights, rows
    )
    return torch.sum(rows * weights.reshape(-1, 1), 0).reshape(x.shape[n:])


@operator("SumReduceLike", types={"a": FLOATS, "b": None}, rearranges=())
def sum_reduce_like(
    a: Tensor,
    b: Tensor,
    *,
    broadcast: bool = False,
    axis: int = -1,
    axis_str: str = "",
    order: str = "NCHW",
) -> Tensor:
    """A summed to the sizes of B, which broadcasts as in `legacy_broadcast`."""
    axis = axis_of(axis, axis_str, order)
    if b.numel() == 1:
        return a.sum().reshape(b.shape)
    like = aligned(a, b, axis).shape
    like = (1,) * (a.dim() - len(like)) + like
    over = [dim for dim in range(a.dim()) if like[dim] == 1 and a.shape[dim] != 1]
    return (a.sum(over) if over else a.clone()).reshape(b.shape)
