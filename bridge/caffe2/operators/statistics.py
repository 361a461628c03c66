# SPDX-License-Identifier: Apache-2.0
"""Histograms, quantiles, and functions in pieces."""

from __future__ import annotations

import bisect

from bridge.caffe2.operators.lazy_torch import torch
from bridge.caffe2.operators.torch_operator import FLOAT, FLOATS, INT32, TorchOperator, enforce
from bridge.caffe2.registry import register_operator

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


class _All(TorchOperator):
    """An operator on the elements of all inputs, of one type."""

    def elements(self) -> torch.Tensor:
        """Give all of them, in one dimension."""
        dtype = self.Input(0).dtype()
        parts = [self.x(i, (dtype,) if i else FLOATS).reshape(-1) for i in range(self.InputSize())]
        return torch.cat(parts)


@register_operator("Histogram")
class Histogram(_All):
    """How many elements of all inputs are between each two of `bin_edges`; the last is outside."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._edges = self.GetRepeatedArgument("bin_edges")
        enforce(len(self._edges) >= 2, "There are two bin_edges or more.")
        enforce(
            all(a < b for a, b in zip(self._edges, self._edges[1:], strict=False)),
            "The bin_edges have to increase.",
        )

    def RunOnDevice(self) -> None:
        """See the class."""
        values = self.elements().double()
        edges = torch.tensor(self._edges, dtype=torch.float32).double()
        places = torch.bucketize(values, edges, right=True)
        counts = torch.bincount(places, minlength=len(edges) + 1)
        self.put(0, counts[1 : len(edges)].clone())


@register_operator("SelfBinningHistogram")
class SelfBinningHistogram(_All):
    """`num_bins` bins from the least element of all inputs to the greatest, and their counts.

    Output 0: the edges, `bin_spacing` linear or logarithmic; output 1: counts, the last one 0.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._n = self.GetSingleArgument("num_bins", 0)
        self._spacing = self.GetSingleArgument("bin_spacing", "linear")
        self._start = self.GetSingleArgument("logspace_start", 1e-24)
        enforce(self._n >= 1, "The argument num_bins is 1 at least.")
        enforce(
            self._spacing in ("linear", "logarithmic"),
            f"The spacing is linear or logarithmic, not {self._spacing!r}.",
        )
        enforce(self._start > 0, "The argument logspace_start has to be positive.")

    def RunOnDevice(self) -> None:
        """See the class."""
        values = self.elements()
        if self.GetSingleArgument("abs", False):
            values = values.abs()
        counts = torch.zeros(self._n + 1, dtype=torch.int64)
        if not len(values):
            self.put(0, values.new_zeros(self._n + 1))
            self.put(1, counts)
            return
        low, high = values.min(), values.max()
        ratios = torch.arange(self._n + 1, dtype=values.dtype) / self._n
        start, greatest = low, high
        if self._spacing == "linear":
            top = low + (high - low) * torch.tensor(1.0001, dtype=values.dtype)
            edges = low + ratios * (top - low)
        else:
            start, greatest = low.clamp(min=self._start), high.clamp(min=self._start)
            top = start + (greatest - start) * torch.tensor(1.0001, dtype=values.dtype)
            edges = start * torch.exp((torch.log(top) - torch.log(start)) * ratios)
        if bool(edges[-1] <= greatest):
            edges[-1] = top
            counts[0] = len(values)
        else:
            places = torch.bucketize(values, edges, right=True)
            found = torch.bincount(places, minlength=self._n + 2)
            counts[: self._n] = found[1 : self._n + 1]
            counts[0] += found[0]
        self.put(0, edges)
        self.put(1, counts)


@register_operator("AccumulateHistogram")
class AccumulateHistogram(TorchOperator):
    """Counts of elements in `num_buckets` from `lower_bound` to `upper_bound`, below and above.

    Output 0: of this run; output 1: of all runs of the operator.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._n = self.GetSingleArgument("num_buckets", 1)
        enforce(self._n > 0, "The argument num_buckets has to be positive.")
        self._counts: Any = None

    def RunOnDevice(self) -> None:
        """See the class."""
        x = self.x(0, FLOAT).reshape(-1)
        low = self.GetSingleArgument("lower_bound", 0.0)
        high = self.GetSingleArgument("upper_bound", 1.0)
        width = torch.tensor(high, dtype=torch.float32).sub(low) / self._n
        places = ((x - low) / width).long().clamp(0, self._n - 1) + 1
        places = torch.where(x < low, 0, torch.where(x >= high, self._n + 1, places))
        counts = torch.bincount(places, minlength=self._n + 2)
        self._counts = counts if self._counts is None else self._counts + counts
        self.put(0, counts)
        self.put(1, self._counts.clone())


@register_operator("Quantile")
class Quantile(_All):
    """A value that `quantile` of the elements, or of their absolute values, are not above.

    Found by bisection to a tolerance `tol`, step by step as there.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._quantile = self.GetSingleArgument("quantile", -1.0)
        self._tolerance = self.GetSingleArgument("tol", 1e-3)
        enforce(0 <= self._quantile <= 1, f"The quantile is from 0 to 1, not {self._quantile}.")
        enforce(self._tolerance > 0, "The argument tol has to be positive.")

    def RunOnDevice(self) -> None:
        """See the class."""
        values = self.elements()
        enforce(len(values) > 0, "There are no elements.")
        if self.GetSingleArgument("abs", True):
            values = values.abs()
        self.put(0, self._found(values).reshape(1).clone())

    def _found(self, values: torch.Tensor) -> torch.Tensor:
        quantile = torch.tensor(self._quantile, dtype=torch.float32)
        target = int(torch.ceil(len(values) * quantile))
        low, high = values.min(), values.max()
        if target == len(values):
            return high
        if target == 0 or int((values <= low).sum()) >= target:
            return low
        while bool((high - low).abs() > self._tolerance * (high.abs() + low.abs())):
            middle = low + (high - low) / 2
            count = int((values <= middle).sum())
            if count == target:
                return middle
            enforce(bool(middle not in (low, high)), "The numbers are too close to bisect.")
            low, high = (low, middle) if count > target else (middle, high)
        return high


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
        """See the class."""
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

    Input 2: how many pairs there are for each column.
    """

    def RunOnDevice(self) -> None:
        """See the class."""
        x, pairs = self.x(0, FLOAT), self.x(1, FLOAT)
        lengths = self.integers(2, INT32)
        enforce(x.dim() == 2 and len(lengths) == x.size(1), "There are pairs for each column.")
        enforce(
            pairs.dim() == 2 and pairs.size(1) == 2 and len(pairs) == sum(lengths),
            f"Pairs of sizes {list(pairs.shape)} are not ({sum(lengths)}, 2).",
        )
        enforce(min(lengths, default=1) > 0, "There are pairs for each column.")
        columns = []
        for column, part in enumerate(torch.split(pairs, lengths)):
            values, percentiles = part[:, 0].contiguous(), part[:, 1]
            enforce(bool((part.diff(dim=0) > 0).all()), "Values and percentiles have to increase.")
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
        """See the class."""
        x = self.x(0, FLOAT)
        low = self.GetSingleArgument("low_value", 0.0)
        high = self.GetSingleArgument("high_value", 0.0)
        above = x > self.GetSingleArgument("threshold", 0.0)
        self.put(0, torch.where(above, high, low).to(torch.float32))


@register_operator("StumpFuncIndex")
class StumpFuncIndex(TorchOperator):
    """The places of elements at most `threshold`, and of the others."""

    def RunOnDevice(self) -> None:
        """See the class."""
        above = self.x(0, FLOAT).reshape(-1) > self.GetSingleArgument("threshold", 0.0)
        self.put(0, (~above).nonzero().view(-1))
        self.put(1, above.nonzero().view(-1))


@register_operator("PiecewiseLinearTransform")
class PiecewiseLinearTransform(TorchOperator):
    """slope * x + intercept, by which of `bounds` x is between, for each column.

    Bounds, slopes and intercepts are arguments, or inputs 1 to 3. With `binary` there is one list,
    for the last column; the first becomes 1 minus that.
    """

    def RunOnDevice(self) -> None:
        """See the class."""
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
        """See the class."""
        x = self.x(0, FLOAT)
        rows = x.reshape(x.size(0), -1) if x.dim() else x
        enforce(x.dim() > 0 and rows.size(1) > max(self._columns), "A column is missing.")
        total = [0] * len(rows)
        for column, known in zip(self._columns, self._maps, strict=True):
            values = rows[:, column].double()
            rounded = torch.where(values < 0, (values - 0.5).ceil(), (values + 0.5).floor())
            for i, value in enumerate(rounded.tolist()):
                total[i] += known.get(int(value), 0)
        self.put(0, torch.tensor(total, dtype=torch.int64))
