# SPDX-License-Identifier: Apache-2.0
"""Column: rows of elements of any type, numbers or objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.caffe2.blobs.objects import Fields
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.tensor.tensor import Tensor


class Column:
    """Rows of elements; the first of `sizes` is the number of rows.

    `items` is a flat torch tensor, or a list if elements are objects. It may be a view of the
    tensor of a blob; `kept` copies it.
    """

    __slots__ = ("dtype", "inner", "items", "sizes")

    def __init__(self, dtype: TypeMeta, sizes: tuple[int, ...], items: Any) -> None:
        self.dtype = dtype
        self.sizes = sizes
        self.items = items
        self.inner = torch.Size(sizes[1:]).numel()

    def __len__(self) -> int:
        return self.sizes[0]

    def rows(self, start: int, count: int) -> Column:
        """Return a view of `count` rows from `start` on."""
        return self._with(count, self.items[start * self.inner : (start + count) * self.inner])

    def kept(self) -> Column:
        """Return a copy."""
        items = self.items.clone() if self.dtype.is_pod else list(self.items)
        return self._with(len(self), items)

    def chosen(self, parts: Iterable[tuple[int, int]]) -> Column:
        """Return a copy of the rows in the ranges (start, count)."""
        return joined([self.rows(0, 0), *[self.rows(start, count) for start, count in parts]])

    def _with(self, count: int, items: Any) -> Column:
        return Column(self.dtype, (count, *self.sizes[1:]), items)


def column_of(tensor: Tensor, name: str) -> Column:
    """Return a view of a tensor's rows. Raises EnforceNotMet: it has no dimensions or memory."""
    require(tensor.dim() > 0, f"{name} must have at least one dimension.")
    dtype = tensor.dtype()
    sizes = tuple(tensor.sizes())
    if dtype and not dtype.is_pod:
        return Column(dtype, sizes, tensor.data(dtype)[:])
    return Column(dtype, sizes, operand(tensor).reshape(-1))


def require_alike(column: Column, dtype: TypeMeta, sizes: Sequence[int]) -> None:
    """Raise EnforceNotMet unless a tensor of this type and sizes has the same rows as `column`."""
    require(
        column.dtype is dtype and len(sizes) > 0 and column.sizes[1:] == tuple(sizes[1:]),
        f"Rows of {column.dtype} of sizes {list(column.sizes[1:])} do not match rows of {dtype} "
        f"of sizes {list(sizes[1:])}.",
    )


def columns_of(operator: TorchOperator, first: int = 0) -> list[Column]:
    """Return the inputs from `first` on as columns."""
    return [column_of(operator.Input(i), f"Input {i}") for i in range(first, operator.InputSize())]


def fields_of(operator: TorchOperator) -> Fields:
    """Return the argument `fields`."""
    return Fields([str(name) for name in operator.GetRepeatedArgument("fields")])


def joined(columns: list[Column]) -> Column:
    """Return the concatenated rows of one or more columns, copied.

    Raises EnforceNotMet: their types differ, or their sizes except the first.
    """
    first = columns[0]
    for one in columns:
        require_alike(one, first.dtype, first.sizes)
    count = sum(map(len, columns))
    if first.dtype.is_pod:
        items: Any = torch.cat([one.items for one in columns])
    else:
        items = [item for one in columns for item in one.items]
    return Column(first.dtype, (count, *first.sizes[1:]), items)


def put_column(operator: TorchOperator, o: int, column: Column) -> None:
    """Set output `o` of an operator to a column, whose items nothing else refers to."""
    if column.dtype.is_pod:
        items = column.items.view(column.sizes)
        if operator.device.type != c10.CPU:  # whose tensors come from a file
            items = items.to(str(operator.device))
        operator.put(o, items)
    else:
        operator.put_objects(o, column.sizes, column.items, column.dtype)
