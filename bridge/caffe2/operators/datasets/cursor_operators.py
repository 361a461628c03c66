# SPDX-License-Identifier: Apache-2.0
"""Operators that read columns by a cursor.

Follows caffe2/operators/dataset_ops.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from typing import Any

import torch

from bridge.caffe2.blobs.objects import Fields, TreeCursor
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import INT32, INT64, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.datasets.columns import Column, column_of, put_column
from bridge.caffe2.operators.datasets.dataset import Dataset
from bridge.caffe2.operators.datasets.standard_shuffle import shuffled


class OfColumns(TorchOperator):
    """An operator on columns."""

    def columns(self, first: int = 0) -> list[Column]:
        """Return the inputs from `first` on as columns."""
        return [column_of(self.Input(i), f"Input {i}") for i in range(first, self.InputSize())]

    def fields(self) -> Fields:
        """Return the argument `fields`."""
        return Fields([str(name) for name in self.GetRepeatedArgument("fields")])


@register_operator("CreateTreeCursor", inputs="0", outputs="1", gradient="undefined")
class CreateTreeCursor(OfColumns):
    """Create a cursor at the beginning of `fields`."""

    def RunOnDevice(self) -> None:
        self.OutputBlob(0).Reset(TreeCursor(self.fields()))


@register_operator("ResetCursor", inputs="1", outputs="0", gradient="undefined")
class ResetCursor(OfColumns):
    """Set the cursor to the beginning."""

    def RunOnDevice(self) -> None:
        self.Input(0, TreeCursor).offsets = []


@register_operator("GetCursorOffset", inputs="1", outputs="1")
class GetCursorOffset(OfColumns):
    """The offset of each domain, int32; empty before the first read."""

    def RunOnDevice(self) -> None:
        self.put(0, torch.tensor(self.Input(0, TreeCursor).offsets, dtype=torch.int32))


class _Reader(OfColumns):
    """An operator on a cursor and the columns of its fields."""

    def opened(self, first: int = 1) -> tuple[TreeCursor, Dataset]:
        """Return the cursor, and the dataset of the inputs from `first` on."""
        cursor: TreeCursor = self.Input(0, TreeCursor)
        return cursor, Dataset(cursor.fields, self.columns(first))

    def batch_size(self) -> int:
        """Return the argument `batch_size` (1)."""
        size: int = self.GetSingleArgument("batch_size", 1)
        require(size >= 0, f"batch_size must not be negative: {size}.")
        return size

    def store_columns(self, columns: list[Column]) -> None:
        """Set the outputs to columns."""
        fits = self.OutputSize() >= len(columns)
        require(fits, f"There are {len(columns)} columns, but {self.OutputSize()} outputs.")
        for o, column in enumerate(columns):
            put_column(self, o, column)


@register_operator("ReadNextBatch", inputs="1-*", outputs="1-*", gradient="undefined")
class ReadNextBatch(_Reader):
    """Read the next `batch_size` (1) records, or the remaining ones.

    With `enforce_batch_size` none if fewer remain. Inputs: the cursor, the columns.
    """

    def RunOnDevice(self) -> None:
        cursor, dataset = self.opened()
        count = self.batch_size()
        with cursor.lock:
            offsets = cursor.offsets or [0] * dataset.fields.n_domains
            sizes = dataset.sizes(offsets, count)
            after = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
            if self.GetSingleArgument("enforce_batch_size", False) and sizes[0] < count:
                sizes = [0] * len(sizes)
            self.store_columns([one.kept() for one in dataset.batch(offsets, sizes)])
            cursor.offsets = after


@register_operator("ComputeOffset", inputs="1-*", outputs="1", gradient="undefined")
class ComputeOffset(_Reader):
    """The offset of each domain at each record and at the end: (records + 1, domains).

    Inputs: the cursor, which is reset, and the columns.
    """

    def RunOnDevice(self) -> None:
        cursor, dataset = self.opened()
        n = dataset.fields.n_domains
        offsets = cursor.offsets or [0] * n
        self.put(0, dataset.offsets(offsets))
        cursor.offsets = [0] * n


@register_operator("SortAndShuffle", inputs="1-*", outputs="1")
class SortAndShuffle(_Reader):
    """The indices of the records, sorted by field `sort_by_field_idx` (1; -1: unsorted).

    Then the records of each run of `shuffle_size` (1) batches are shuffled, except the last run,
    then the batches of `batch_size` (1). The order is that of the C++ library Caffe2 was built
    with; equal keys keep their order.
    """

    def RunOnDevice(self) -> None:
        field = self.GetSingleArgument("sort_by_field_idx", 1)
        batch = self.batch_size()
        run = self.GetSingleArgument("shuffle_size", 1)
        cursor, dataset = self.opened()
        n = len(dataset.columns)
        require(-1 <= field < n, f"There is no field {field} to sort by.")
        require(n > 0, "There are no columns.")
        require(batch > 0 and run > 0, "batch_size and shuffle_size must be at least 1.")
        size = len(dataset.columns[max(field, 0)])
        order = torch.arange(size, device="cpu")
        if field >= 0:
            fits = cursor.fields.domains[field] == 0
            require(fits, f"Field {field} is part of a list, not of the records.")
            keys = self.x(field + 1, INT32).reshape(-1).cpu()
            require(len(keys) >= size, f"Field {field} must have one number per record.")
            order = torch.sort(keys[:size], stable=True).indices
        run, batches = batch * min(run, size // batch), size // batch
        parts = order[: (size - 1) // run * run if run else 0].view(-1, max(run, 1))
        order = torch.cat([parts[:, shuffled(run)].flatten(), order[parts.numel() :]])
        parts = order[: batches * batch].view(batches, batch)
        self.put(0, torch.cat([parts[shuffled(batches)].flatten(), order[parts.numel() :]]))


@register_operator("ReadRandomBatch", inputs="1-*", outputs="1-*", gradient="undefined")
class ReadRandomBatch(_Reader):
    """Read the next `batch_size` (1) records in the order of SortAndShuffle.

    Inputs: the cursor, the order, the offsets of ComputeOffset, the columns. At the end no records,
    or with `loop_over` from the beginning; with `enforce_batch_size` an incomplete batch counts as
    none.
    """

    def RunOnDevice(self) -> None:
        cursor: TreeCursor = self.Input(0, TreeCursor)
        with cursor.lock:
            self._read(cursor)

    def _read(self, cursor: TreeCursor) -> None:
        columns = self.columns(3)
        fields = cursor.fields
        fits = len(columns) == len(fields.names)
        require(fits, f"There are {len(columns)} columns, but {len(fields.names)} fields.")
        order, table = self.x(1, INT64).reshape(-1), self.x(2, INT64)
        require(table.dim() == 2, "The offsets must have two dimensions.")
        count = self.batch_size()
        start = cursor.offsets[0] if cursor.offsets else 0
        at = start
        if self.GetSingleArgument("enforce_batch_size", False) and at + count > len(order):
            at = len(order)
        if self.GetSingleArgument("loop_over", False) and at >= len(order):
            start = at = 0
        chosen = order[at : at + count]
        require(
            not bool(((chosen < 0) | (chosen >= table.size(0) - 1)).any())
            and fields.n_domains <= table.size(1),
            "The offsets have no row for one of the records.",
        )
        starts = table[chosen]
        sizes = table[chosen + 1] - starts
        read = []
        for column, domain in zip(columns, fields.domains, strict=True):
            parts = [*zip(starts[:, domain].tolist(), sizes[:, domain].tolist(), strict=True)]
            fits = all(min(first, n) >= 0 and first + n <= len(column) for first, n in parts)
            require(fits, "The offsets are out of range of a column.")
            read.append(column.chosen(parts))
        self.store_columns(read)
        cursor.offsets = [start + count]


@register_operator("CheckDatasetConsistency", inputs="1-*", outputs="0", gradient="undefined")
class CheckDatasetConsistency(OfColumns):
    """No output. Raises EnforceNotMet: lengths do not match the rows of `fields`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._fields = self.fields()

    def RunOnDevice(self) -> None:
        fields = self._fields
        dataset = Dataset(fields, self.columns())
        for name, column, domain in zip(fields.names, dataset.columns, fields.domains, strict=True):
            require(
                len(column) == dataset.limits[domain],
                f"Field {name!r} has {len(column)} rows, others of its domain have "
                f"{dataset.limits[domain]}.",
            )
        sizes = dataset.sizes([0] * fields.n_domains, dataset.limits[0])
        require(
            sizes == dataset.limits,
            f"The lengths add up to {sizes} rows per domain, but there are {dataset.limits}.",
        )
