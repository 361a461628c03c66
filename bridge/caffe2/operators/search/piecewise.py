# SPDX-License-Identifier: Apache-2.0
"""Functions defined by pieces: StumpFunc, StumpFuncIndex, PiecewiseLinearTransform."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import has_values, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.execution.declaration import Out

__all__: list[str] = []


@operator("StumpFunc", gradient="none")
def stump_func(
    x: Tensor,
    *,
    threshold: float = 0.0,
    low_value: float = 0.0,
    high_value: float = 0.0,
    out: Out = None,
) -> Tensor:
    """`low_value` where an element is at most `threshold`, else `high_value`."""
    low, high = x.new_full((), low_value), x.new_full((), high_value)
    return torch.where(x <= threshold, low, high, out=out)


@operator("StumpFuncIndex", gradient="none", effects=("values",))
def stump_func_index(x: Tensor, *, threshold: float = 0.0) -> tuple[Tensor, Tensor]:
    """The indices of elements that are at most `threshold`, and of the others."""
    below = x.reshape(-1) <= threshold
    return below.nonzero().view(-1), (~below).nonzero().view(-1)


def _column(x: Tensor, bounds: Tensor, slopes: Tensor, intercepts: Tensor) -> Tensor:
    inside = x.clamp(bounds[0], bounds[-1])
    piece = (torch.bucketize(x.contiguous(), bounds) - 1).clamp(0, slopes.shape[0] - 1)
    return slopes[piece] * inside + intercepts[piece]


@operator("PiecewiseLinearTransform", gradient="undefined")
def piecewise_linear_transform(
    x: Tensor,
    bounds_of: Tensor | None = None,
    slopes_of: Tensor | None = None,
    intercepts_of: Tensor | None = None,
    *,
    bounds: list[float] | None = None,
    slopes: list[float] | None = None,
    intercepts: list[float] | None = None,
    binary: bool = False,
) -> Tensor:
    """slope * x + intercept of the piece between `bounds` that x is in, per column.

    `bounds`, `slopes` and `intercepts` are arguments, or inputs 1 to 3. With `binary` there is one
    list, for the last column; the first one is 1 minus it.
    """
    given = bounds_of, slopes_of, intercepts_of
    lists = bounds or [], slopes or [], intercepts or []
    require(all(lists) or not any(lists), "bounds, slopes and intercepts are set, or none of them")
    if all(lists):
        require(bounds_of is None, "the pieces are arguments or inputs, not both")
        edges, factors, offsets = (x.new_tensor(one) for one in lists)
    else:
        require(intercepts_of is not None, "the pieces are arguments or inputs 1 to 3")
        edges, factors, offsets = (one.reshape(-1) for one in given if one is not None)
    groups = edges.shape[0] - factors.shape[0]
    require(
        factors.shape == offsets.shape
        and groups > 0
        and factors.shape[0] >= groups
        and factors.shape[0] % groups == 0,
        "there is one slope and intercept between each two bounds",
        edges,
        factors,
        offsets,
    )
    edges, factors, offsets = (one.view(groups, -1) for one in (edges, factors, offsets))
    if has_values(edges):
        require(not bool((edges.diff(dim=1) < 0).any()), "the bounds are sorted", edges.tolist())
    if binary:
        require(groups == 1, "there is one list of pieces with binary", groups)
        require(
            x.dim() == 1 or (x.dim() == 2 and x.shape[1] in (1, 2)),
            "X has one or two columns with binary",
            x,
        )
        columns = x.reshape(x.shape[0], -1)
        last = _column(columns[:, -1], edges[0], factors[0], offsets[0])
        parts = [last] if columns.shape[1] == 1 else [1 - last, last]
    else:
        require(
            x.dim() == 2 and x.shape[1] == groups,
            f"X is a matrix with a column for each of {groups} lists of pieces",
            x,
        )
        parts = [_column(x[:, i], edges[i], factors[i], offsets[i]) for i in range(groups)]
    return torch.stack(parts, 1).reshape(x.shape)
