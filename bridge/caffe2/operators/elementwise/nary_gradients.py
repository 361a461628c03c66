# SPDX-License-Identifier: Apache-2.0
"""Gradients of Max, Min, Mean and WeightedSum."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.operators.base.checks import FLOATS, require, shaped_like


@operator("MaxGradient", inputs="3-*")
@operator("MinGradient", inputs="3-*")
def extreme_gradient(
    y: Tensor, dy: Tensor, *xs: Tensor, outputs: OutputCount = 1
) -> tuple[Tensor, ...]:
    """(Y, dY, X0, X1, ...) -> dX0, dX1, ...: dY where X equals Y, else 0."""
    require(outputs == len(xs), "there is one output per X", outputs)
    zero = dy.new_zeros(())
    found = []
    for x in xs:
        largest, slope = shaped_like(y, x), shaped_like(dy, x)
        found.append(torch.where(x == largest, slope, zero))
    return tuple(found)


@operator("MeanGradient", inplace="0>0", types=FLOATS)
def mean_gradient(dy: Tensor, *, outputs: OutputCount = 1) -> tuple[Tensor, ...]:
    """dX0, dX1, ... = dY / n for n outputs."""
    return tuple([dy / outputs for _ in range(outputs)])


@operator("WeightedSumGradient", inputs="2n-1")
def weighted_sum_gradient(
    dy: Tensor, *xs: Tensor, grad_on_w: bool = False, outputs: OutputCount = 1
) -> tuple[Tensor, ...]:
    """(dY, X0, w0, X1, w1, ...) -> dX0, dX1, ..., with `grad_on_w` also dw0, dw1, ..."""
    n = len(xs) // 2
    require(outputs == n * (1 + grad_on_w), "there is one gradient per X", n)
    for w in xs[1::2]:
        require(w.numel() == 1, "a weight has one element", w)
    dxs = [dy * w.view(()) for w in xs[1::2]]
    if grad_on_w:
        dxs += [(dy * x).sum().view(1) for x in xs[::2]]
    return tuple(dxs)
