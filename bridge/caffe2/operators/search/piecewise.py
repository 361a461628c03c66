# SPDX-License-Identifier: Apache-2.0
"""Functions defined by pieces, and percentiles by tables of values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INT32, require, require_all
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import check_lengths
from bridge.caffe2.operators.search import search_kernels


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
    out: Out = None,
) -> Tensor:
    """slope * x + intercept of the piece between `bounds` that x is in, per column.

    `bounds`, `slopes` and `intercepts` are arguments, or inputs 1 to 3. With `binary` there is one
    list, for the last column; the first one is 1 minus it.
    """
    found: list[Any] = [bounds or [], slopes or [], intercepts or []]
    require(all(found) or not any(found), "bounds, slopes and intercepts are set, or none of them")
    if all(found):
        require(bounds_of is None, "the pieces are arguments or inputs, not both")
        counts = [len(one) for one in found]
    else:
        require(intercepts_of is not None, "the pieces are arguments or inputs 1 to 3")
        found = [bounds_of, slopes_of, intercepts_of]
        counts = [one.numel() for one in found]
    groups = counts[0] - counts[1]
    fits = counts[1] == counts[2] and groups > 0 and counts[1] >= groups and counts[1] % groups == 0
    require(fits, "there is one slope and intercept between each two bounds", *counts)
    if binary:
        require(groups == 1, "there is one list of pieces with binary", groups)
        fits = x.dim() == 1 or (x.dim() == 2 and x.shape[1] in (1, 2))
        require(fits, "X has one or two columns with binary", x)
    else:
        fits = x.dim() == 2 and x.shape[1] == groups
        require(fits, f"X is a matrix with a column for each of {groups} lists of pieces", x)
    if takes_kernels(x, *(one for one in found if type(one) is not list)):
        made = torch.empty_like(x) if out is None else out
        rows = x.shape[0]
        columns = x.shape[1] if x.dim() == 2 else 1
        return run_kernel(
            search_kernels.linear_pieces,
            made,
            x,
            *found,
            rows,
            columns,
            counts[1] // groups,
            binary,
        )
    edges, factors, offsets = (
        (x.new_tensor(one) if type(one) is list else one).reshape(groups, -1) for one in found
    )
    require_all(~(edges.diff(dim=1) < 0), "the bounds are sorted", edges)
    if binary:
        columns_of = x.reshape(x.shape[0], -1)
        last = _column(columns_of[:, -1], edges[0], factors[0], offsets[0])
        parts = [last] if columns_of.shape[1] == 1 else [1 - last, last]
    else:
        parts = [_column(x[:, i], edges[i], factors[i], offsets[i]) for i in range(groups)]
    return torch.stack(parts, 1).reshape(x.shape)


@operator("BisectPercentile", gradient="none")
def bisect_percentile(
    x: Tensor,
    *,
    percentile_raw: list[float] | None = None,
    percentile_mapping: list[float] | None = None,
    percentile_lower: list[float] | None = None,
    percentile_upper: list[float] | None = None,
    lengths: list[int] | None = None,
) -> Tensor:
    """Percentiles of the elements of each column, by tables in the arguments.

    percentile_raw: values; percentile_mapping: their percentiles; percentile_lower and
    percentile_upper: the ends of the interpolation between values; lengths: the number of values
    per column.
    """
    given = percentile_raw, percentile_mapping, percentile_lower, percentile_upper
    sizes, counts = lengths or [], [len(one or []) for one in given]
    require(len(set(counts)) == 1, "the tables have the same length", counts)
    fits = sum(sizes) == counts[0] and min(sizes, default=1) > 0
    require(
        fits, "the lengths are positive, and add up to the length of the tables", sizes, counts[0]
    )
    fits = x.dim() == 2 and x.shape[1] == len(sizes)
    require(fits, f"X is a matrix with a column for each of {len(sizes)} tables", x)
    if not sizes:
        return x.new_zeros(x.shape)
    tables = [torch.split(x.new_tensor(one, dtype=torch.float64), sizes) for one in given]
    columns = [
        _percentile(x[:, i].double(), *(one[i] for one in tables)) for i in range(len(sizes))
    ]
    return torch.stack(columns, 1).float()


def _percentile(x: Tensor, raw: Tensor, mapping: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    last = raw.shape[0] - 1
    k = (torch.bucketize(x, raw, right=True) - 1).clamp(0, last)
    after = (k + 1).clamp(max=last)
    weight = (x - raw[k]) / (raw[after] - raw[k] + 1e-10)
    between = (1 - weight) * upper[k] + weight * lower[after]
    found = torch.where(raw[k] == x, mapping[k], between)
    return torch.where(x < raw[0], 0.0, torch.where(x > raw[-1], 1.0, found))


@operator("Percentile", types={"lengths": INT32}, gradient="none", effects=("values",))
def percentile(x: Tensor, value_to_pct: Tensor, lengths: Tensor) -> Tensor:
    """Percentiles of the elements of each column, interpolated between pairs in input 1.

    `value_to_pct`: (value, percentile) pairs, assumed to be sorted; `lengths`: the number of pairs
    per column.
    """
    sizes = lengths.reshape(-1)
    fits = x.dim() == 2 and sizes.shape[0] == x.shape[1]
    require(fits, "X is a matrix, and there is one length per column", x, lengths)
    fits = value_to_pct.dim() == 2 and value_to_pct.shape[1] == 2
    require(fits, "the table is a matrix of pairs", value_to_pct)
    check_lengths(sizes, value_to_pct.shape[0])
    columns = []
    for i, pairs in enumerate(torch.split(value_to_pct, sizes.tolist())):
        column = x[:, i].contiguous()
        if not pairs.shape[0]:
            columns.append(torch.ones_like(column))  # every element is above no values
            continue
        values, percentiles = pairs[:, 0].contiguous(), pairs[:, 1]
        last = values.shape[0]
        found = torch.bucketize(column, values)
        above, below = found.clamp(max=last - 1), (found - 1).clamp(min=0)
        span = values[above] - values[below]
        weight = torch.where(span > 0, (column - values[below]) / span, 0)
        between = percentiles[below] + weight * (percentiles[above] - percentiles[below])
        outside = torch.where(found == 0, 0.0, torch.where(found == last, 1.0, between))
        columns.append(torch.where(column == values[above], percentiles[above], outside))
    return torch.stack(columns, 1) if columns else x.clone()
