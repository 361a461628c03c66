# SPDX-License-Identifier: Apache-2.0
"""Operators on categories: KeySplit and NGramFromCategorical."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.operators.base.checks import INT64, require, require_range


@operator("KeySplit", types=INT64, effects=("values",))
def key_split(keys: Tensor, *, categorical_limit: int = 0, outputs: OutputCount) -> list[Tensor]:
    """The indices of each key from 0 to `categorical_limit` - 1, one output per key."""
    require(categorical_limit > 0, "categorical_limit is positive", categorical_limit)
    require(outputs == categorical_limit, "there is one output per key", outputs)
    require_range("keys", keys, categorical_limit)
    flat = keys.reshape(-1)
    return [(flat == key).nonzero().view(-1).int() for key in range(categorical_limit)]


@operator("NGramFromCategorical", gradient="none")
def n_gram_from_categorical(
    x: Tensor,
    *,
    col_ids: list[int] | None = None,
    categorical_limits: list[int] | None = None,
    vals: list[int] | None = None,
) -> Tensor:
    """A number per combination of categories in the columns `col_ids`.

    Column i has `categorical_limits[i]` categories, the next ones of `vals`.
    """
    columns, limits, categories = col_ids or [], categorical_limits or [], vals or []
    require(len(limits) == len(columns) > 0, "there is one limit per column", limits, columns)
    fits = min(limits) > 0 and min(columns) >= 0
    require(fits, "limits are positive, and columns not negative", limits, columns)
    require(sum(limits) == len(categories), "the limits add up to the number of vals", limits)
    require(x.dim() > 0, "X has at least one dimension", x)
    rows = x.reshape(x.shape[0], math.prod(x.shape[1:]))
    require(rows.shape[1] > max(columns), f"X has a column {max(columns)}", x)
    total = torch.zeros(rows.shape[0], dtype=torch.int64, device=x.device)
    base, start = 1, 0
    for column, limit in zip(columns, limits, strict=True):
        values = rows[:, column].double()
        rounded = torch.where(values < 0, (values - 0.5).ceil(), (values + 0.5).floor())
        # Of categories with the same value the last one counts.
        numbers = torch.arange(limit, device=x.device)
        known = numbers.new_tensor(categories[start : start + limit])
        is_known = rounded.long()[:, None] == known
        total = total + torch.where(is_known, numbers, 0).amax(1) * base
        base *= limit
        start += limit
    return total
