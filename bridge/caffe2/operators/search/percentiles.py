# SPDX-License-Identifier: Apache-2.0
"""Percentiles by tables, functions in pieces, categories as numbers."""

from __future__ import annotations

import bisect

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT32, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("BisectPercentile")
class BisectPercentile(TorchOperator):
    """Percentiles of the elements of each column, by tables in the arguments.

    percentile_raw: values; percentile_mapping: their percentiles, percentile_lower and _upper: what
    to go from and to between them; lengths: how many for each column.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._tables = [
            self.GetRepeatedArgument(f"percentile_{name}")
            for name in ("raw", "mapping", "lower", "upper")
        ]
        self._lengths = self.GetRepeatedArgument("lengths")
        enforce(len({len(one) for one in self._tables}) == 1, "The tables differ in length.")
        enforce(sum(self._lengths) == len(self._tables[0]), "The lengths are not of the tables.")

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        enforce(
            x.dim() == 2 and x.size(1) == len(self._lengths), "There is a table for each column."
        )
        columns, start = [], 0
        for column, length in enumerate(self._lengths):
            tables = [one[start : start + length] for one in self._tables]
            columns.append([_percentile(value, *tables) for value in x[:, column].tolist()])
            start += length
        self.put(0, torch.tensor(columns, dtype=torch.float32).t().reshape(x.shape))


def _percentile(
    value: float, raw: list[float], mapping: list[float], lower: list[float], upper: list[float]
) -> float:
    if value < raw[0]:
        return 0.0
    if value > raw[-1]:
        return 1.0
    k = min(bisect.bisect_right(raw, value) - 1, len(raw) - 1)
    if raw[k] == value:
        return mapping[k]
    weight = (value - raw[k]) / (raw[k + 1] - raw[k] + 1e-10)
    return (1 - weight) * upper[k] + weight * lower[k + 1]


@register_operator("Percentile")
class Percentile(TorchOperator):
    """Percentiles of the elements of each column, between pairs of value and percentile, input 1.

    Input 2: how many pairs there are for each column. They are searched as if they were sorted.
    """

    def RunOnDevice(self) -> None:
        x, pairs = self.x(0, FLOAT), self.x(1, FLOAT)
        lengths = self.integers(2, INT32)
        enforce(x.dim() == 2 and len(lengths) == x.size(1), "There are pairs for each column.")
        enforce(
            pairs.dim() == 2 and pairs.size(1) == 2 and len(pairs) == sum(lengths),
            f"Pairs of sizes {list(pairs.shape)} are not ({sum(lengths)}, 2).",
        )
        enforce(min(lengths, default=0) >= 0, "A length is not negative.")
        columns = []
        for column, part in enumerate(torch.split(pairs, lengths)):
            if not len(part):
                columns.append(torch.ones(len(x)))  # above the last value, as there is none
                continue
            values, percentiles = part[:, 0].contiguous(), part[:, 1]
            found = torch.bucketize(x[:, column].contiguous(), values)
            above, below = found.clamp(max=len(values) - 1), (found - 1).clamp(min=0)
            span = values[above] - values[below]
            weight = torch.where(span > 0, (x[:, column] - values[below]) / span, 0)
            between = percentiles[below] + weight * (percentiles[above] - percentiles[below])
            outside = torch.where(found == 0, 0.0, torch.where(found == len(values), 1.0, between))
            columns.append(torch.where(x[:, column] == values[above], percentiles[above], outside))
        self.put(0, torch.stack(columns, 1) if columns else x.clone())


@register_operator("StumpFunc")
class StumpFunc(TorchOperator):
    """`low_value` where an element is at most `threshold`, else `high_value`."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        low = self.GetSingleArgument("low_value", 0.0)
        high = self.GetSingleArgument("high_value", 0.0)
        below = x <= self.GetSingleArgument("threshold", 0.0)
        self.put(0, torch.where(below, low, high).to(torch.float32))


@register_operator("StumpFuncIndex")
class StumpFuncIndex(TorchOperator):
    """The places of elements at most `threshold`, and of the others."""

    def RunOnDevice(self) -> None:
        below = self.x(0, FLOAT).reshape(-1) <= self.GetSingleArgument("threshold", 0.0)
        self.put(0, below.nonzero().view(-1))
        self.put(1, (~below).nonzero().view(-1))


@register_operator("PiecewiseLinearTransform")
class PiecewiseLinearTransform(TorchOperator):
    """slope * x + intercept, by which of `bounds` x is between, for each column.

    Bounds, slopes and intercepts are arguments, or inputs 1 to 3. With `binary` there is one list,
    for the last column; the first becomes 1 minus that.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        given = [self.GetRepeatedArgument(name) for name in ("bounds", "slopes", "intercepts")]
        enforce(all(given) or not any(given), "bounds, slopes and intercepts are all set, or none.")
        if all(given):
            enforce(self.InputSize() == 1, "The pieces are arguments or inputs, and not both.")
            tables = [torch.tensor(one, dtype=torch.float32) for one in given]
        else:
            enforce(self.InputSize() == 4, "The pieces are neither arguments nor inputs.")
            tables = [self.x(i, FLOAT).reshape(-1) for i in (1, 2, 3)]
        bounds, slopes, intercepts = tables
        groups = len(bounds) - len(slopes)
        enforce(
            len(slopes) == len(intercepts)
            and groups > 0
            and len(slopes) >= groups
            and len(slopes) % groups == 0,
            f"{len(bounds)} bounds, {len(slopes)} slopes and {len(intercepts)} intercepts do not "
            "fit together.",
        )
        bounds = bounds.view(groups, -1)
        enforce(bool((bounds.diff(dim=1) >= 0).all()), "The bounds are not sorted.")
        slopes, intercepts = slopes.view(groups, -1), intercepts.view(groups, -1)
        if self.GetSingleArgument("binary", False):
            enforce(groups == 1, "With binary there is one list.")
            enforce(
                x.dim() == 1 or (x.dim() == 2 and x.size(1) in (1, 2)),
                "With binary there is one column, or two.",
            )
            columns = x.reshape(len(x), -1)
            last = self._column(columns[:, -1], bounds[0], slopes[0], intercepts[0])
            parts = [last] if columns.size(1) == 1 else [1 - last, last]
        else:
            enforce(x.dim() == 2 and x.size(1) == groups, "There is a list for each column.")
            parts = [
                self._column(x[:, i], bounds[i], slopes[i], intercepts[i]) for i in range(groups)
            ]
        self.put(0, torch.stack(parts, 1).reshape(x.shape))

    def _column(
        self, x: torch.Tensor, bounds: torch.Tensor, slopes: torch.Tensor, intercepts: torch.Tensor
    ) -> torch.Tensor:
        inside = x.clamp(bounds[0], bounds[-1])
        piece = (torch.bucketize(x.contiguous(), bounds) - 1).clamp(0, len(slopes) - 1)
        return slopes[piece] * inside + intercepts[piece]


@register_operator("NGramFromCategorical")
class NGramFromCategorical(TorchOperator):
    """A number for the categories in the columns `col_ids`, of `categorical_limits` `vals` each."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._columns = self.GetRepeatedArgument("col_ids")
        limits = self.GetRepeatedArgument("categorical_limits")
        values = self.GetRepeatedArgument("vals")
        enforce(len(limits) == len(self._columns), "There is a limit for each column.")
        enforce(bool(self._columns), "The argument col_ids is missing.")
        enforce(min(limits) > 0 and min(self._columns) >= 0, "Limits and columns are too small.")
        enforce(sum(limits) == len(values), "The limits do not make up the values.")
        self._maps, base, start = [], 1, 0
        for limit in limits:
            part = values[start : start + limit]
            self._maps.append({value: m * base for m, value in enumerate(part)})
            base *= limit
            start += limit

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        rows = x.reshape(x.size(0), x.shape[1:].numel()) if x.dim() else x
        enforce(x.dim() > 0 and rows.size(1) > max(self._columns), "A column is missing.")
        total = [0] * len(rows)
        for column, known in zip(self._columns, self._maps, strict=True):
            values = rows[:, column].double()
            rounded = torch.where(values < 0, (values - 0.5).ceil(), (values + 0.5).floor())
            for i, value in enumerate(rounded.tolist()):
                total[i] += known.get(int(value), 0)
        self.put(0, torch.tensor(total, dtype=torch.int64))
