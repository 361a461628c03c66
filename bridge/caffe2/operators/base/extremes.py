# SPDX-License-Identifier: Apache-2.0
"""Limits and the greatest or least elements over dimensions, with the gradients of Caffe2."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.operators.base.gradients import gradient_alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.execution.declaration import Out

__all__ = ["clamped", "extreme_over"]


def clamped(x: Tensor, low: float, high: float, out: Out = None) -> Tensor:
    """Return `x` clamped to [`low`, `high`]; its gradient is 0 at the limits, as in Caffe2."""
    if x.requires_grad:
        found: Tensor = torch.where((x > low) & (x < high), x, torch.clamp(x.detach(), low, high))
    else:
        found = torch.clamp(x, low, high, out=out)
    return found


def extreme_over(
    x: Tensor,
    dims: list[int] | tuple[int, ...],
    keepdim: bool,
    greatest: bool = True,
    out: Out = None,
) -> Tensor:
    """Return the greatest elements of `x` over `dims`, or the least ones.

    All of several equal ones have the gradient of the result, as in Caffe2; torch divides it.
    """
    function = torch.amax if greatest else torch.amin
    if not x.requires_grad:
        return function(x, dims, keepdim, out=out)
    fixed = x.detach()
    kept = function(fixed, dims, True)
    change = torch.where(x == kept, gradient_alone(x), x.new_zeros(())).sum(dims, keepdim)
    return change + (kept if keepdim else function(fixed, dims, False))
