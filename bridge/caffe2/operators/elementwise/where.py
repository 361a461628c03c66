# SPDX-License-Identifier: Apache-2.0
"""Where and Conditional: elements or rows selected by conditions."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import BOOL, require

_TYPES = {"condition": BOOL, "x": None, "y": "x"}


def _by_rows(condition: Tensor, x: Tensor) -> Tensor:
    """Return a view of conditions, one per row of `x`, that broadcasts with `x`."""
    fits = condition.dim() == 1 and x.dim() > 0 and condition.shape[0] == x.shape[0]
    require(fits, "there is one bool per row", condition, x)
    return condition.view(-1, *[1] * (x.dim() - 1))


@operator("Where", types=_TYPES, gradient="undefined")
def where(
    condition: Tensor, x: Tensor, y: Tensor, *, broadcast_on_rows: bool = False, out: Out = None
) -> Tensor:
    """X where the condition is true, else Y; by rows with `broadcast_on_rows`."""
    known = (torch.int32, torch.int64, torch.float32, torch.float64, torch.bool)
    require(x.dtype in known, "X is of numbers, bools or strings", x.dtype)
    require(x.shape == y.shape, "X and Y have the same sizes", x, y)
    if broadcast_on_rows:
        condition = _by_rows(condition, x)
    else:
        require(condition.shape == x.shape, "the condition has the sizes of X", condition, x)
    return torch.where(condition, x, y, out=out)


@operator("Conditional", types=_TYPES, gradient="none")
def conditional(condition: Tensor, x: Tensor, y: Tensor, *, out: Out = None) -> Tensor:
    """The rows of X where the condition is true, else those of Y."""
    require(x.shape == y.shape, "X and Y have the same sizes", x, y)
    return torch.where(_by_rows(condition, x), x, y, out=out)
