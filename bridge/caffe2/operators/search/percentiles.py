# SPDX-License-Identifier: Apache-2.0
"""Percentiles by tables of values: BisectPercentile and Percentile."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, require
from bridge.caffe2.operators.base.rows_and_segments import check_lengths


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
