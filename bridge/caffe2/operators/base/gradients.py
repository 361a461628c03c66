# SPDX-License-Identifier: Apache-2.0
"""Values that have the gradient of Caffe2, which torch does not give them; gradient operators.

A tensor minus its own values is 0 and has its gradient. Of infinite elements the difference would
be NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import shaped_like


def gradient_alone(x: Tensor) -> Tensor:
    """Return 0 with the gradient of `x`; infinite elements as they are.

    To be added to values that are those of `x`: the sum is as large, then, too.
    """
    return torch.where(torch.isinf(x), x, x - x.detach())


def with_gradient(values: Tensor, x: Tensor) -> Tensor:
    """Return `values`, which have no gradient, with that of `x`: none of infinite elements."""
    finite = torch.nan_to_num(x)
    return values + (finite - finite.detach())


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


def declare_gradient(
    name: str,
    formula: str,
    slope: Callable[[Tensor], Tensor],
    combined: Callable[..., Tensor] = torch.mul,
    *,
    first: str = "x",
    **declared: Any,
) -> None:
    """Declare dx = `combined`(dy, slope(x)) as the gradient operator of `name`.

    Its inputs are (x, dy), or (dy, x) if the `first` is dy; x stands for the output y, too.
    """

    def by_input(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
        return combined(shaped_like(dy, x), slope(x), out=out)

    def by_gradient(dy: Tensor, x: Tensor, *, out: Out = None) -> Tensor:
        return combined(dy, slope(shaped_like(x, dy)), out=out)

    compute = by_gradient if first == "dy" else by_input
    compute.__doc__ = f"dx = {formula}."
    compute.__name__ = compute.__qualname__ = f"{name.lower()}_gradient"
    operator(f"{name}Gradient", **declared)(compute)
