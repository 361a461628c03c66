# SPDX-License-Identifier: Apache-2.0
"""Operators that look up elements: Unique, Find, IsMemberOf, KeySplit, NGramFromCategorical."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.string_arrays import Strings, as_bytes
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.operators.base.checks import FLOATS, INT64, INTS, require, require_range


@operator("Unique", types=INTS, gradient="undefined", outputs="1-2", effects=("values",))
def unique(indices: Tensor) -> tuple[Tensor, Tensor]:
    """The unique elements, sorted; output 1: the index of each element among them, int32."""
    require(indices.dim() == 1, "the indices have one dimension", indices)
    values, places = torch.unique(indices, return_inverse=True)
    return values, places.int()


@operator("Find", types={"index": INTS, "query": "index"})
def find(index: Tensor, query: Tensor, *, missing_value: int = -1) -> Tensor:
    """The last position in `index` of each element of `query`, or `missing_value`."""
    if not index.numel():
        return query.new_full(query.shape, missing_value)
    known, order = torch.sort(index.reshape(-1), stable=True)
    places = (torch.searchsorted(known, query, right=True) - 1).clamp(min=0)
    return torch.where(known[places] == query, order[places], missing_value).to(index.dtype)


@operator(
    "FindDuplicateElements",
    types={"data": (*FLOATS, *INTS, c10.string)},
    gradient="undefined",
    effects=("values",),
)
def find_duplicate_elements(data: Tensor | Strings) -> Tensor:
    """The indices of elements that occurred before."""
    require(data.dim() == 1, "the data have one dimension", data)
    items = data.items if isinstance(data, Strings) else data.tolist()
    seen: set[object] = set()
    again = []
    for i, item in enumerate(items):
        if item in seen:
            again.append(i)
        seen.add(item)
    device = None if isinstance(data, Strings) else data.device
    return torch.tensor(again, dtype=torch.int64, device=device or "cpu")


class Members:
    """The arguments of IsMemberOf: the values, of any type, and the number of their type."""

    takes = "Scalar[] value, int dtype"

    def __init__(self, arguments: Arguments) -> None:
        self.values = arguments.repeated("value")
        dtype = arguments.single("dtype")
        self.type = None if dtype is None else type_of_argument(dtype, "dtype")
        # (here, as torch before 2.9 does not trace it)
        self.torch_type = None if self.type is None else self.type.torch


@operator("IsMemberOf", types={"x": (*INTS, c10.bool, c10.string)}, gradient="undefined")
def is_member_of(x: Tensor | Strings, *, members: Members) -> Tensor:
    """Whether each element is one of the argument `value`, which has the type `dtype`.

    As in Caffe2, values of another type equal none of the elements.
    """
    if isinstance(x, Strings):
        fits = members.type in (None, c10.string)
        wanted = {as_bytes(one) for one in members.values} if fits else set()
        found = [one in wanted for one in x.items]
        return torch.tensor(found, dtype=torch.bool, device="cpu").reshape(x.shape)
    fits = members.type is None or members.torch_type == x.dtype
    given = [one for one in members.values if fits and not isinstance(one, (str, bytes))]
    return torch.isin(x.long(), torch.tensor(given, dtype=torch.int64, device=x.device))


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
