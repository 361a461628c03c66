# SPDX-License-Identifier: Apache-2.0
"""Column: rows of elements of any type, numbers or objects; Dataset: records as columns.

Fields of records are named ``a:b:c``. A field ``a:lengths`` has the lengths of the lists whose
elements are the rows of ``a:...``; fields without one belong to the records. Follows TreeIterator
and TreeCursor, caffe2/operators/dataset_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor as TorchTensor

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.caffe2.blobs.objects import Fields
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.operators.base.checks import INT32, require
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
    whole = row_of(tensor)
    return Column(whole.dtype, whole.sizes[1:], whole.items)


def row_of(tensor: Tensor) -> Column:
    """Return a view of a whole tensor as one row. Raises EnforceNotMet: it has no memory."""
    dtype, sizes = tensor.dtype(), (1, *tensor.sizes())
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


class Dataset:
    """Columns, one per field.

    `limits` are the numbers of rows per domain.
    Raises EnforceNotMet: the numbers of columns and of fields differ, or lengths are not int32.
    """

    def __init__(self, fields: Fields, columns: list[Column]) -> None:
        fits = len(columns) == len(fields.names)
        require(fits, f"There are {len(columns)} columns, but {len(fields.names)} fields.")
        self.fields = fields
        self.columns = columns
        self.lengths = [self._lengths_of(field) for field in fields.lengths]
        self.limits = [
            min(
                (len(columns[i]) for i, one in enumerate(fields.domains) if one == domain),
                default=2**63 - 1,
            )
            for domain in range(fields.n_domains)
        ]

    def _lengths_of(self, field: int) -> TorchTensor:
        column = self.columns[field]
        if not len(column.items):
            return torch.zeros(0, dtype=torch.int32, device="cpu")
        require(
            column.dtype in INT32, f"Field {self.fields.names[field]!r}, lengths, must be int32."
        )
        lengths: TorchTensor = column.items.cpu()
        return lengths

    def sizes(self, offsets: Sequence[int], count: int) -> list[int]:
        """Return the number of rows per domain of the next `count` records, or the remaining ones.

        Raises EnforceNotMet: the offsets are beyond the end, the lengths of these records negative
        or beyond the rows.
        """
        n = self.fields.n_domains
        require(
            len(offsets) == n, f"The cursor has {len(offsets)} offsets, but there are {n} domains."
        )
        require(offsets[0] <= self.limits[0], "The cursor is beyond the end of the records.")
        sizes = [min(self.limits[0] - offsets[0], count)]
        for domain, lengths in enumerate(self.lengths, 1):
            parent = self._parent(domain)
            taken = lengths[offsets[parent] : offsets[parent] + sizes[parent]]
            size = int(taken.sum())
            name = self.fields.names[self.fields.lengths[domain - 1]]
            negative = bool((taken < 0).any())
            require(not negative, f"Field {name!r}, lengths, must not be negative.")
            require(
                offsets[domain] + size <= self.limits[domain],
                f"Field {name!r} exceeds the {self.limits[domain]} rows of its domain.",
            )
            sizes.append(size)
        return sizes

    def _parent(self, domain: int) -> int:
        """Return the domain of the lengths of `domain`."""
        return self.fields.domains[self.fields.lengths[domain - 1]]

    def offsets(self, first: Sequence[int]) -> TorchTensor:
        """Return the offsets of each record from those of the `first` on, and of the end.

        One row for each of all records, (records + 1, domains): the last rows are of the end.
        Raises EnforceNotMet: as `sizes`, or no column has the domain of the records.
        """
        limit = self.limits[0]
        require(limit < 2**63 - 1, "No column has the domain of the records.")
        self.sizes(first, limit)  # checks them
        columns = [torch.arange(first[0], first[0] + limit + 1, device="cpu").clamp(max=limit)]
        for domain, lengths in enumerate(self.lengths, 1):
            parent = self._parent(domain)
            ends = torch.constant_pad_nd(lengths.cumsum(0), (1, 0))
            columns.append(ends[columns[parent]] - ends[first[parent]] + first[domain])
        return torch.stack(columns, 1)

    def batch(self, offsets: Sequence[int], sizes: Sequence[int]) -> list[Column]:
        """Return a view of these rows of each column."""
        return [
            column.rows(offsets[domain], sizes[domain])
            for column, domain in zip(self.columns, self.fields.domains, strict=True)
        ]
