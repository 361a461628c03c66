# SPDX-License-Identifier: Apache-2.0
"""Operators that read columns by a cursor.

Follows caffe2/operators/dataset_ops.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bridge.caffe2.blobs.objects import TreeCursor
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import INT32, INT64, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.operators.datasets.columns import (
    Column,
    Dataset,
    columns_of,
    fields_of,
    put_column,
)


@procedure("CreateTreeCursor", inputs="0", outputs="1", gradient="undefined")
def create_tree_cursor(op: TorchOperator) -> None:
    """Create a cursor at the beginning of `fields`."""
    op.OutputBlob(0).Reset(TreeCursor(fields_of(op)))


@procedure("ResetCursor", inputs="1", outputs="0", gradient="undefined")
def reset_cursor(op: TorchOperator) -> None:
    """Set the cursor to the beginning."""
    op.Input(0, TreeCursor).offsets = []


@procedure("GetCursorOffset", inputs="1", outputs="1")
def get_cursor_offset(op: TorchOperator) -> None:
    """The offset of each domain, int32; empty before the first read."""
    op.put(0, torch.tensor(op.Input(0, TreeCursor).offsets, dtype=torch.int32))


def _opened(op: TorchOperator) -> tuple[TreeCursor, Dataset]:
    """Return the cursor, and the dataset of the inputs after it."""
    cursor: TreeCursor = op.Input(0, TreeCursor)
    return cursor, Dataset(cursor.fields, columns_of(op, 1))


def _batch_size(op: TorchOperator) -> int:
    size: int = op.GetSingleArgument("batch_size", 1)
    require(size >= 0, f"batch_size must not be negative: {size}.")
    return size


def _store_columns(op: TorchOperator, columns: list[Column]) -> None:
    fits = op.OutputSize() >= len(columns)
    require(fits, f"There are {len(columns)} columns, but {op.OutputSize()} outputs.")
    for o, column in enumerate(columns):
        put_column(op, o, column)


@procedure("ReadNextBatch", inputs="1-*", outputs="1-*", gradient="undefined")
def read_next_batch(op: TorchOperator) -> None:
    """Read the next `batch_size` (1) records, or the remaining ones.

    With `enforce_batch_size` none if fewer remain. Inputs: the cursor, the columns.
    """
    cursor, dataset = _opened(op)
    count = _batch_size(op)
    with cursor.lock:
        offsets = cursor.offsets or [0] * dataset.fields.n_domains
        sizes = dataset.sizes(offsets, count)
        after = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
        if op.GetSingleArgument("enforce_batch_size", False) and sizes[0] < count:
            sizes = [0] * len(sizes)
        _store_columns(op, [one.kept() for one in dataset.batch(offsets, sizes)])
        cursor.offsets = after


@procedure("ComputeOffset", inputs="1-*", outputs="1", gradient="undefined")
def compute_offset(op: TorchOperator) -> None:
    """The offset of each domain at each record and at the end: (records + 1, domains).

    Inputs: the cursor, which is reset, and the columns.
    """
    cursor, dataset = _opened(op)
    n = dataset.fields.n_domains
    offsets = cursor.offsets or [0] * n
    op.put(0, dataset.offsets(offsets))
    cursor.offsets = [0] * n


@procedure("SortAndShuffle", inputs="1-*", outputs="1")
def sort_and_shuffle(op: TorchOperator) -> None:
    """The indices of the records, sorted by field `sort_by_field_idx` (1; -1: unsorted).

    Then the records of each run of `shuffle_size` (1) batches are shuffled, except the last run,
    then the batches of `batch_size` (1). The order is that of the C++ library Caffe2 was built
    with; equal keys keep their order.
    """
    field = op.GetSingleArgument("sort_by_field_idx", 1)
    batch = _batch_size(op)
    run = op.GetSingleArgument("shuffle_size", 1)
    cursor, dataset = _opened(op)
    n = len(dataset.columns)
    require(-1 <= field < n, f"There is no field {field} to sort by.")
    require(n > 0, "There are no columns.")
    require(batch > 0 and run > 0, "batch_size and shuffle_size must be at least 1.")
    size = len(dataset.columns[max(field, 0)])
    order = torch.arange(size, device="cpu")
    if field >= 0:
        fits = cursor.fields.domains[field] == 0
        require(fits, f"Field {field} is part of a list, not of the records.")
        keys = op.x(field + 1, INT32).reshape(-1).cpu()
        require(len(keys) >= size, f"Field {field} must have one number per record.")
        order = torch.sort(keys[:size], stable=True).indices
    run, batches = batch * min(run, size // batch), size // batch
    parts = order[: (size - 1) // run * run if run else 0].view(-1, max(run, 1))
    order = torch.cat([parts[:, _shuffled(run)].flatten(), order[parts.numel() :]])
    parts = order[: batches * batch].view(batches, batch)
    op.put(0, torch.cat([parts[_shuffled(batches)].flatten(), order[parts.numel() :]]))


def _shuffled(size: int) -> list[int]:
    """Return the numbers from 0 to below `size` as std::shuffle orders them, with a new engine.

    As in GNU's library: std::default_random_engine is the minimal standard generator, and each draw
    gives two indices while their product fits.
    """
    places, i, draw = list(range(size)), 1, _below()
    several = bool(size) and _RANGE // size >= size
    if several and size % 2 == 0:
        drawn = draw(2)
        places[1], places[drawn], i = places[drawn], places[1], 2
    while i < size:
        drawn = draw((i + 1) * (i + 2) if several else i + 1)
        for at in divmod(drawn, i + 2) if several else (drawn,):
            places[i], places[at] = places[at], places[i]
            i += 1
    return places


_MODULUS = 2**31 - 1
_RANGE = _MODULUS - 2  # the engine returns 1 to MODULUS - 1


def _below() -> Callable[[int], int]:
    """Return a function that draws a uniform integer in [0, count)."""
    state = 1

    def draw(count: int) -> int:
        nonlocal state
        scale = _RANGE // count
        while True:
            state = state * 16807 % _MODULUS
            if state - 1 < count * scale:
                return (state - 1) // scale

    return draw


@procedure("ReadRandomBatch", inputs="1-*", outputs="1-*", gradient="undefined")
def read_random_batch(op: TorchOperator) -> None:
    """Read the next `batch_size` (1) records in the order of SortAndShuffle.

    Inputs: the cursor, the order, the offsets of ComputeOffset, the columns. At the end no records,
    or with `loop_over` from the beginning; with `enforce_batch_size` an incomplete batch counts as
    none.
    """
    cursor: TreeCursor = op.Input(0, TreeCursor)
    with cursor.lock:
        columns = columns_of(op, 3)
        fields = cursor.fields
        fits = len(columns) == len(fields.names)
        require(fits, f"There are {len(columns)} columns, but {len(fields.names)} fields.")
        order, table = op.x(1, INT64).reshape(-1), op.x(2, INT64)
        require(table.dim() == 2, "The offsets must have two dimensions.")
        count = _batch_size(op)
        start = cursor.offsets[0] if cursor.offsets else 0
        at = start
        if op.GetSingleArgument("enforce_batch_size", False) and at + count > len(order):
            at = len(order)
        if op.GetSingleArgument("loop_over", False) and at >= len(order):
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
        _store_columns(op, read)
        cursor.offsets = [start + count]


@register_operator("CheckDatasetConsistency", inputs="1-*", outputs="0", gradient="undefined")
class CheckDatasetConsistency(TorchOperator):
    """No output. Raises EnforceNotMet: lengths do not match the rows of `fields`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._fields = fields_of(self)

    def RunOnDevice(self) -> None:
        fields = self._fields
        dataset = Dataset(fields, columns_of(self))
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
