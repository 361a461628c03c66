# SPDX-License-Identifier: Apache-2.0
"""Percentiles by tables of values: BisectPercentile and Percentile."""

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

    percentile_raw: values; percentile_mapping: their percentiles; percentile_lower and
    percentile_upper: the ends of the interpolation between values; lengths: the number of values
    per column.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._tables = [
            self.GetRepeatedArgument(f"percentile_{name}")
            for name in ("raw", "mapping", "lower", "upper")
        ]
        self._lengths = self.GetRepeatedArgument("lengths")
        enforce(
            len({len(one) for one in self._tables}) == 1, "The tables must have the same length."
        )
        enforce(
            sum(self._lengths) == len(self._tables[0]),
            "The lengths must add up to the length of the tables.",
        )

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        enforce(
            x.dim() == 2 and x.size(1) == len(self._lengths),
            "There must be one table per column of the matrix input 0.",
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
    """Percentiles of the elements of each column, interpolated between pairs in input 1.

    Input 1: (value, percentile) pairs, assumed to be sorted; input 2: the number of pairs per
    column.
    """

    def RunOnDevice(self) -> None:
        x, pairs = self.x(0, FLOAT), self.x(1, FLOAT)
        lengths = self.integers(2, INT32)
        enforce(
            x.dim() == 2 and len(lengths) == x.size(1),
            "There must be one length per column of the matrix input 0.",
        )
        enforce(
            pairs.dim() == 2 and pairs.size(1) == 2 and len(pairs) == sum(lengths),
            f"Pairs of sizes {list(pairs.shape)} are not ({sum(lengths)}, 2).",
        )
        enforce(min(lengths, default=0) >= 0, "Lengths must not be negative.")
        columns = []
        for column, part in enumerate(torch.split(pairs, lengths)):
            if not len(part):
                columns.append(torch.ones(len(x)))  # without values every element is above them
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
