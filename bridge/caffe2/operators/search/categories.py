# SPDX-License-Identifier: Apache-2.0
"""Operators on categories: KeySplit and NGramFromCategorical."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT64, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("KeySplit")
class KeySplit(TorchOperator):
    """The indices of each key from 0 to `categorical_limit` - 1, one output per key."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._limit = self.GetSingleArgument("categorical_limit", 0)
        enforce(self._limit > 0, "The argument categorical_limit must be positive.")

    def RunOnDevice(self) -> None:
        keys = self.x(0, INT64).reshape(-1)
        enforce(self.OutputSize() == self._limit, "There must be one output per key.")
        enforce(bool(((keys >= 0) & (keys < self._limit)).all()), "A key is out of range.")
        for key in range(self._limit):
            self.put(key, (keys == key).nonzero().view(-1).int())


@register_operator("NGramFromCategorical")
class NGramFromCategorical(TorchOperator):
    """A number per combination of categories in the columns `col_ids`.

    Column i has `categorical_limits[i]` categories, the next ones of `vals`.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._columns = self.GetRepeatedArgument("col_ids")
        limits = self.GetRepeatedArgument("categorical_limits")
        values = self.GetRepeatedArgument("vals")
        enforce(len(limits) == len(self._columns), "There must be one limit per column.")
        enforce(bool(self._columns), "The argument col_ids is missing.")
        enforce(
            min(limits) > 0 and min(self._columns) >= 0,
            "Limits must be positive, columns must not be negative.",
        )
        enforce(sum(limits) == len(values), "The limits must add up to the number of vals.")
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
