# SPDX-License-Identifier: Apache-2.0
"""Elements found, sorted, counted and put into buckets."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceIndexError
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.strings import as_bytes
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows import segments_of_lengths
from bridge.caffe2.operators.base.torch_operator import (
    FLOAT,
    FLOATS,
    INT32,
    INT64,
    INTS,
    TorchOperator,
    enforce,
    plain_axis,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("TopK")
class TopK(TorchOperator):
    """The `k` greatest elements along `axis`, their places, and their places in all of input 0.

    `k` is an argument or input 1. Of equal elements the first ones; 0 and -1 where there are fewer.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        k = self.GetSingleArgument("k", -1)
        if k == -1 and self.InputSize() == 2:
            enforce(self.Input(1).numel() > 0, "Input 1 has to be a number.")
            k = self.integers(1, INT64)[0]
        enforce(k >= 1, f"k is 1 at least, not {k}.")
        axis = plain_axis(self.GetSingleArgument("axis", -1), x.dim())
        n, inner = x.size(axis), x.shape[axis + 1 :].numel()
        rows = x.reshape(x.shape[:axis].numel(), n, inner)
        found = min(k, n)
        order = torch.sort(rows, dim=1, descending=True, stable=True)
        sizes = [*x.shape[:axis], k, *x.shape[axis + 1 :]]
        values = x.new_zeros(rows.size(0), k, rows.size(2))
        places = torch.full((rows.size(0), k, rows.size(2)), -1)
        values[:, :found] = order.values[:, :found]
        places[:, :found] = order.indices[:, :found]
        if self.OutputSize() > 2:
            starts = torch.arange(rows.size(0)).view(-1, 1, 1) * n * inner
            flat = places * inner + starts + torch.arange(rows.size(2))
            self.put(2, torch.where(places < 0, -1, flat).reshape(-1))
        self.put(0, values.reshape(sizes))
        self.put(1, places.reshape(sizes))


@register_operator("FlexibleTopK")
class FlexibleTopK(TorchOperator):
    """The greatest elements of each row, as many as input 1 says, one row after another."""

    def RunOnDevice(self) -> None:
        x, ks = self.x(0, FLOAT), self.x(1, INT64).reshape(-1)
        enforce(x.dim() > 0, "Input 0 has to have a dimension.")
        rows = x.reshape(-1, x.size(-1))
        enforce(len(ks) == len(rows), f"{len(ks)} numbers are given for {len(rows)} rows.")
        enforce(
            bool(((ks >= 1) & (ks <= rows.size(1))).all()),
            f"k is 1 to {rows.size(1)} for each row.",
        )
        order = torch.sort(rows, dim=1, descending=True, stable=True)
        taken = torch.arange(rows.size(1)) < ks[:, None]
        self.put(0, order.values[taken])
        self.put(1, order.indices[taken])


@register_operator("Unique")
class Unique(TorchOperator):
    """Each element once, sorted; output 1: where each element went, as int32."""

    def RunOnDevice(self) -> None:
        x = self.x(0, INTS)
        enforce(x.dim() == 1, "Input 0 has to have one dimension.")
        values, places = torch.unique(x, return_inverse=True)
        self.put(0, values)
        if self.OutputSize() > 1:
            self.put(1, places.int())


@register_operator("Find")
class Find(TorchOperator):
    """The last place in input 0 of each element of input 1, or `missing_value` (-1)."""

    def RunOnDevice(self) -> None:
        x = self.x(0, INTS)
        needles = self.x(1, (self.Input(0).dtype(),))
        missing = self.GetSingleArgument("missing_value", -1)
        places = {value: i for i, value in enumerate(x.reshape(-1).tolist())}
        found = [places.get(one, missing) for one in needles.reshape(-1).tolist()]
        self.put(0, torch.tensor(found, dtype=x.dtype).reshape(needles.shape))


@register_operator("FindDuplicateElements")
class FindDuplicateElements(TorchOperator):
    """The places of elements that were there before."""

    def RunOnDevice(self) -> None:
        enforce(self.Input(0).dim() == 1, "Input 0 has to have one dimension.")
        items = self.strings(0) if self.has_strings(0) else self.x(0, (*FLOATS, *INTS)).tolist()
        seen: set[Any] = set()
        again = []
        for i, item in enumerate(items):
            if item in seen:
                again.append(i)
            seen.add(item)
        self.put(0, torch.tensor(again, dtype=torch.int64))


@register_operator("IsMemberOf")
class IsMemberOf(TorchOperator):
    """Whether each element is one of argument `value`."""

    def RunOnDevice(self) -> None:
        values = self.GetRepeatedArgument("value")
        if self.HasArgument("dtype"):
            given = type_of_argument(self.GetSingleArgument("dtype"), "dtype")
            # To Caffe2 values that are said to be of another type are none of the elements.
            values = values if given is self.Input(0).dtype() else []
        if self.has_strings(0):
            wanted = {as_bytes(one) for one in values}
            found = torch.tensor([one in wanted for one in self.strings(0)], dtype=torch.bool)
            self.put(0, found.reshape(torch.Size(self.Input(0).sizes())))
            return
        x = self.x(0, (*INTS, c10.bool))
        self.put(0, torch.isin(x.long(), torch.tensor(values, dtype=torch.int64)))


@register_operator("Bucketize")
class Bucketize(TorchOperator):
    """The number of the bucket that `boundaries` put each element in, as int32; of NaN 0."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._boundaries = self.GetRepeatedArgument("boundaries")
        enforce(self._boundaries == sorted(self._boundaries), "The boundaries are not sorted.")

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        enforce(x.dim() >= 1, "Input 0 has to have a dimension.")
        boundaries = torch.tensor(self._boundaries, dtype=torch.float32)
        self.put(0, torch.bucketize(x, boundaries, out_int32=True).masked_fill_(x.isnan(), 0))


class _PerColumn(TorchOperator):
    """An operator with values for each column of input 0, one list after another."""

    def lists(self, i: int, lengths: int, types: tuple[c10.TypeMeta, ...]) -> list[torch.Tensor]:
        """Return the values of input `i` as a list for each column, of the lengths of an input."""
        sizes = self.integers(lengths, INT32)
        values = self.x(i, types).reshape(-1)
        enforce(min(sizes, default=0) >= 0, "Lengths are not negative.")
        enforce(
            sum(sizes) == len(values),
            f"Lengths of together {sum(sizes)} are given for {len(values)} values.",
        )
        return list(torch.split(values, sizes))


@register_operator("BatchBucketize")
class BatchBucketize(_PerColumn):
    """The buckets of the columns of input 0 that input 1 names, by boundaries of their own."""

    def RunOnDevice(self) -> None:
        x, columns = self.x(0, FLOAT), self.integers(1, INT32)
        enforce(x.dim() == 2, "Input 0 has to be a matrix.")
        lists = self.lists(2, 3, FLOAT)
        enforce(len(lists) == len(columns), "There are boundaries for each column that is named.")
        if any(not 0 <= column < x.size(1) for column in columns):
            raise EnforceIndexError(f"A column of {columns} is not among {x.size(1)}.")
        found = [
            torch.bucketize(x[:, column].contiguous(), edges, out_int32=True)
            for column, edges in zip(columns, lists, strict=True)
        ]
        self.put(0, torch.stack(found, 1) if found else x.new_zeros((len(x), 0)).int())


@register_operator("OneHot")
class OneHot(TorchOperator):
    """1 at the place of each index of input 0, in rows as long as input 1 says, float32."""

    def RunOnDevice(self) -> None:
        indices = self.x(0, INT64)
        enforce(indices.dim() == 1, "Input 0 has to have one dimension.")
        enforce(self.Input(1).numel() == 1, "Input 1 has to be a number.")
        n = len(indices)
        self.put(0, _one_hot(indices, self.integers(1, INT64)[0], torch.arange(n), n))


def _one_hot(indices: torch.Tensor, size: int, rows: torch.Tensor, n: int) -> torch.Tensor:
    """Return `n` rows of `size` zeros, with 1 at the index of each of `rows`."""
    if bool(((indices < 0) | (indices >= size)).any()):
        raise EnforceIndexError(f"An index is out of range for {size}.")
    result = torch.zeros((n, max(size, 0)), dtype=torch.float32)
    result[rows, indices] = 1
    return result


@register_operator("SegmentOneHot")
class SegmentOneHot(TorchOperator):
    """1 at the places of the indices of each segment; inputs: lengths, indices, row length."""

    def RunOnDevice(self) -> None:
        lengths, indices = self.x(0, INT32), self.x(1, INT64)
        enforce(lengths.dim() == 1 and indices.dim() == 1, "Lengths and indices are lists.")
        enforce(self.Input(2).numel() == 1, "Input 2 has to be a number.")
        ids = segments_of_lengths(lengths, len(indices))
        self.put(0, _one_hot(indices, self.integers(2, INT64)[0], ids, len(lengths)))


@register_operator("BatchOneHot")
class BatchOneHot(_PerColumn):
    """For each column of input 0 whether it is each of its values: inputs data, lengths, values."""

    def RunOnDevice(self) -> None:
        x = self.x(0, INTS)
        enforce(x.dim() >= 1, "Input 0 has to have a dimension.")
        lists = self.lists(2, 1, (self.Input(0).dtype(),))
        if not x.numel():
            self.put(0, x.new_zeros(x.size(0), sum(map(len, lists))))
            return
        rows = x.reshape(x.size(0), -1)
        enforce(
            len(lists) == rows.size(1),
            f"{len(lists)} lengths are given for {rows.size(1)} columns.",
        )
        found = [rows[:, column, None] == values for column, values in enumerate(lists)]
        self.put(0, torch.cat(found, 1).to(x.dtype))


@register_operator("BatchBucketOneHot")
class BatchBucketOneHot(_PerColumn):
    """1 at the bucket of each column of input 0: inputs data, lengths, boundaries; float32."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        enforce(x.dim() == 2, "Input 0 has to be a matrix.")
        lists = self.lists(2, 1, FLOAT)
        enforce(len(lists) == x.size(1), f"{len(lists)} lengths for {x.size(1)} columns.")
        found = []
        for column, edges in enumerate(lists):
            enforce(len(edges) > 0, f"There are no boundaries for column {column}.")
            x_column = x[:, column].contiguous()
            # Of buckets between equal boundaries the one in the middle.
            place = torch.bucketize(x_column, edges) + torch.bucketize(x_column, edges, right=True)
            place //= 2
            found.append(torch.nn.functional.one_hot(place, len(edges) + 1))
        result = torch.cat(found, 1) if found else x.new_zeros((x.size(0), 0))
        self.put(0, result.float())


@register_operator("KeySplit")
class KeySplit(TorchOperator):
    """The places of each key from 0 to `categorical_limit`, an output each."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._limit = self.GetSingleArgument("categorical_limit", 0)
        enforce(self._limit > 0, "The argument categorical_limit has to be positive.")

    def RunOnDevice(self) -> None:
        keys = self.x(0, INT64).reshape(-1)
        enforce(self.OutputSize() == self._limit, "There is an output for each key.")
        enforce(bool(((keys >= 0) & (keys < self._limit)).all()), "A key is out of range.")
        for key in range(self._limit):
            self.put(key, (keys == key).nonzero().view(-1).int())
