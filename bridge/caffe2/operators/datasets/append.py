# SPDX-License-Identifier: Apache-2.0
"""Rows appended to tensors in place, and rows cut off.

Follows caffe2/operators/dataset_ops.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from typing import Any

from bridge.caffe2.blobs.objects import Mutex
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.operators.datasets.columns import (
    Column,
    Dataset,
    column_of,
    columns_of,
    fields_of,
    require_alike,
)
from bridge.caffe2.tensor.tensor import Tensor

GROWTH = 40  # percent of spare rows on reallocation


def write_rows(tensor: Tensor, start: int, column: Column) -> None:
    """Overwrite rows of `tensor` from `start` on with `column`, which has the same type."""
    if not len(column.items):
        return
    first = start * column.inner
    last = first + len(column) * column.inner
    if column.dtype.is_pod:
        operand(tensor).view(-1)[first:last].copy_(column.items)
    else:
        tensor.mutable_data(column.dtype)[first:last] = list(column.items)


def append_rows(tensor: Tensor, more: Column) -> None:
    """Append rows of the same type and sizes to `tensor`, in place if it has capacity."""
    rows = tensor.size(0)
    tensor.Extend(len(more), GROWTH)
    write_rows(tensor, rows, more)


def _is_new(tensor: Tensor) -> bool:
    return tensor.dim() > 0 and tensor.size(0) == 0


def _check_rows(op: TorchOperator, i: int, j: int) -> None:
    """Raise EnforceNotMet unless the rows of input `j` can be appended to input `i`."""
    before, more = op.Input(i), column_of(op.Input(j), f"Input {j}")
    if not _is_new(before):
        require_alike(more, before.dtype(), before.sizes())


def _append(op: TorchOperator, j: int, o: int) -> None:
    """Append the rows of input `j` to output `o`, which is in place of an input."""
    more = column_of(op.Input(j), f"Input {j}").kept()
    tensor = op.Output(o)
    if _is_new(tensor):
        tensor.CopyFrom(op.Input(j))
    else:
        append_rows(tensor, more)


@procedure("Append", inputs="2", outputs="1", inplace="0>0!", gradient="undefined")
def append(op: TorchOperator) -> None:
    """Append the rows of input 1 to input 0, in place."""
    _check_rows(op, 0, 1)
    _append(op, 1, 0)


@procedure("AtomicAppend", inputs="3-*", outputs="1-*", inplace="1>0*", gradient="undefined")
def atomic_append(op: TorchOperator) -> None:
    """Append to several tensors, under a mutex.

    Inputs: the mutex, the tensors, which are the outputs, and the rows for each of them.
    """
    with op.Input(0, Mutex).lock:
        n = (op.InputSize() - 1) // 2
        fits = op.OutputSize() == n
        require(fits, f"There are {n} tensors to append to, but {op.OutputSize()} outputs.")
        for o in range(n):
            if not _is_new(op.Input(1 + o)):
                fits = op.IsInputOutputAlias(1 + o, o)
                require(fits, f"Output {o} must be in place of input {1 + o}.")
            _check_rows(op, 1 + o, 1 + n + o)
        for o in range(n):
            _append(op, 1 + n + o, o)


@register_operator("TrimDataset", inputs="1-*", outputs="1-*", inplace="0>0*!")
class TrimDataset(TorchOperator):
    """Cut off the last records, so that their number is a multiple of `multiple_of` (1)."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._fields = fields_of(self)
        self._multiple = self.GetSingleArgument("multiple_of", 1)
        require(self._multiple >= 1, f"multiple_of must be at least 1, not {self._multiple}.")

    def RunOnDevice(self) -> None:
        dataset = Dataset(self._fields, columns_of(self))
        n = dataset.limits[0] // self._multiple * self._multiple
        if n == dataset.limits[0]:
            return
        sizes = dataset.sizes([0] * self._fields.n_domains, n)
        require(self.OutputSize() == len(dataset.columns), "There must be one output per column.")
        for o, domain in enumerate(self._fields.domains):
            self.Output(o).ShrinkTo(sizes[domain])
