# SPDX-License-Identifier: Apache-2.0
"""Buckets by boundaries, and one-hot encodings."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceIndexError
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import segment_ids
from bridge.caffe2.operators.base.torch_operator import (
    FLOAT,
    INT32,
    INT64,
    INTS,
    TorchOperator,
    enforce,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("Bucketize")
class Bucketize(TorchOperator):
    """The bucket of each element between `boundaries`, int32; 0 for NaN."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._boundaries = self.GetRepeatedArgument("boundaries")
        enforce(self._boundaries == sorted(self._boundaries), "The boundaries must be sorted.")

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        enforce(x.dim() >= 1, "Input 0 must have at least one dimension.")
        boundaries = torch.tensor(self._boundaries, dtype=torch.float32)
        self.put(0, torch.bucketize(x, boundaries, out_int32=True).masked_fill_(x.isnan(), 0))


class _PerColumn(TorchOperator):
    """An operator with a list of values per column of input 0, concatenated."""

    def lists(self, i: int, lengths: int, types: tuple[c10.TypeMeta, ...]) -> list[torch.Tensor]:
        """Return the values of input `i` as a list per column, by the lengths in an input."""
        sizes = self.integers(lengths, INT32)
        values = self.x(i, types).reshape(-1)
        enforce(min(sizes, default=0) >= 0, "Lengths must not be negative.")
        enforce(
            sum(sizes) == len(values),
            f"The lengths add up to {sum(sizes)}, but there are {len(values)} values.",
        )
        return list(torch.split(values, sizes))


@register_operator("BatchBucketize")
class BatchBucketize(_PerColumn):
    """The buckets of the columns of input 0 in input 1, with boundaries per column.

    Inputs: data, column indices, boundaries, lengths of the boundaries.
    """

    def RunOnDevice(self) -> None:
        x, columns = self.x(0, FLOAT), self.integers(1, INT32)
        enforce(x.dim() == 2, "Input 0 must have two dimensions.")
        lists = self.lists(2, 3, FLOAT)
        enforce(
            len(lists) == len(columns), "There must be one list of boundaries per column index."
        )
        if any(not 0 <= column < x.size(1) for column in columns):
            raise EnforceIndexError(
                f"An index of {columns} is out of range for {x.size(1)} columns."
            )
        found = [
            torch.bucketize(x[:, column].contiguous(), edges, out_int32=True)
            for column, edges in zip(columns, lists, strict=True)
        ]
        self.put(0, torch.stack(found, 1) if found else x.new_zeros((len(x), 0)).int())


@register_operator("OneHot")
class OneHot(TorchOperator):
    """Rows with 1 at the index in input 0, else 0; their length is input 1; float32."""

    def RunOnDevice(self) -> None:
        indices = self.x(0, INT64)
        enforce(indices.dim() == 1, "Input 0 must have one dimension.")
        enforce(self.Input(1).numel() == 1, "Input 1 must have one element.")
        n = len(indices)
        self.put(0, _one_hot(indices, self.integers(1, INT64)[0], torch.arange(n), n))


def _one_hot(indices: torch.Tensor, size: int, rows: torch.Tensor, n: int) -> torch.Tensor:
    """Return `n` rows of `size` zeros, with 1 at the index for each of `rows`."""
    if bool(((indices < 0) | (indices >= size)).any()):
        raise EnforceIndexError(f"An index is out of range for {size}.")
    result = torch.zeros((n, max(size, 0)), dtype=torch.float32)
    result[rows, indices] = 1
    return result


@register_operator("SegmentOneHot")
class SegmentOneHot(TorchOperator):
    """Rows with 1 at the indices of each segment; inputs: lengths, indices, row length."""

    def RunOnDevice(self) -> None:
        lengths, indices = self.x(0, INT32), self.x(1, INT64)
        enforce(
            lengths.dim() == 1 and indices.dim() == 1,
            "Lengths and indices must have one dimension.",
        )
        enforce(self.Input(2).numel() == 1, "Input 2 must have one element.")
        ids = segment_ids(lengths, len(indices))
        self.put(0, _one_hot(indices, self.integers(2, INT64)[0], ids, len(lengths)))


@register_operator("BatchOneHot")
class BatchOneHot(_PerColumn):
    """Whether each column of input 0 equals each of its values; inputs: data, lengths, values."""

    def RunOnDevice(self) -> None:
        x = self.x(0, INTS)
        enforce(x.dim() >= 1, "Input 0 must have at least one dimension.")
        lists = self.lists(2, 1, (self.Input(0).dtype(),))
        if not x.numel():
            self.put(0, x.new_zeros(x.size(0), sum(map(len, lists))))
            return
        rows = x.reshape(x.size(0), -1)
        enforce(
            len(lists) == rows.size(1),
            f"There are {len(lists)} lengths, but {rows.size(1)} columns.",
        )
        found = [rows[:, column, None] == values for column, values in enumerate(lists)]
        self.put(0, torch.cat(found, 1).to(x.dtype))


@register_operator("BatchBucketOneHot")
class BatchBucketOneHot(_PerColumn):
    """One-hot buckets of each column of input 0; inputs: data, lengths, boundaries; float32."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        enforce(x.dim() == 2, "Input 0 must have two dimensions.")
        lists = self.lists(2, 1, FLOAT)
        enforce(
            len(lists) == x.size(1), f"There are {len(lists)} lengths, but {x.size(1)} columns."
        )
        found = []
        for column, edges in enumerate(lists):
            enforce(len(edges) > 0, f"There are no boundaries for column {column}.")
            x_column = x[:, column].contiguous()
            # The middle one of the buckets between equal boundaries.
            place = torch.bucketize(x_column, edges) + torch.bucketize(x_column, edges, right=True)
            place //= 2
            found.append(torch.nn.functional.one_hot(place, len(edges) + 1))
        result = torch.cat(found, 1) if found else x.new_zeros((x.size(0), 0))
        self.put(0, result.float())
