# SPDX-License-Identifier: Apache-2.0
"""Records packed into one element each, and lists of tensors.

Follows caffe2/operators/dataset_ops.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from typing import Any

import torch

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.blobs.objects import Record
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.operators.datasets.columns import (
    Column,
    Dataset,
    column_of,
    columns_of,
    fields_of,
    joined,
    put_column,
)
from bridge.caffe2.tensor.tensor import Tensor


class Records:
    """Several records as one element."""

    def __init__(self, records: list[Record] | None = None) -> None:
        self.records = records


class TensorVector:
    """A list of tensors, each as a column."""

    def __init__(self) -> None:
        self.columns: list[Column] = []


for _class in (Records, TensorVector):
    TypeMeta.Register(_class)


@procedure("PackRecords", inputs="1-*", outputs="1", gradient="undefined")
def pack_records(op: TorchOperator) -> None:
    """Pack the columns of `fields` into a 1-d tensor with one Record per row.

    With `pack_to_single_shared_ptr` into one element that holds all of them.
    """
    dataset = Dataset(fields_of(op), columns_of(op))
    offsets = dataset.offsets([0] * dataset.fields.n_domains)
    records = [
        Record([one.kept() for one in dataset.batch(start, sizes)])
        for start, sizes in zip(offsets.tolist(), offsets.diff(dim=0).tolist(), strict=False)
    ]
    if op.GetSingleArgument("pack_to_single_shared_ptr", 0):
        op.put_objects(0, [1], [Records(records)], TypeMeta.Make(Records))
    else:
        op.put_objects(0, [len(records)], records, TypeMeta.Make(Record))


@procedure("UnPackRecords", inputs="1-*", outputs="1-*", gradient="undefined")
def un_pack_records(op: TorchOperator) -> None:
    """The columns packed by PackRecords.

    Inputs after the first are prototypes of the columns, required if there are no records.
    """
    records = _records(op.Input(0))
    prototypes = columns_of(op, 1)
    fits = bool(records) or bool(prototypes)
    require(fits, "Without records, the columns must be given by prototypes.")
    columns = prototypes or list(records[0])
    n = len(op.GetRepeatedArgument("fields"))
    require(
        len(columns) == n and op.OutputSize() == n,
        f"There are {len(columns)} columns, but {n} fields and {op.OutputSize()} outputs.",
    )
    require(all(len(one) == n for one in records), f"Each record must have {n} columns.")
    unpacked = [
        joined([column.rows(0, 0), *[record[k] for record in records]])
        for k, column in enumerate(columns)
    ]
    for o, column in enumerate(unpacked):
        put_column(op, o, column)


def _records(given: Tensor) -> list[list[Column]]:
    dtype = given.dtype()
    if dtype == TypeMeta.Make(Record):
        found: list[Any] = [one.columns for one in given.data(dtype)[:]]
    elif dtype == TypeMeta.Make(Records):
        require(given.numel() == 1, f"Input 0 must have one element, not {given.numel()}.")
        found = [one.columns for one in given.data(dtype)[0].records or []]
    else:
        raise EnforceTypeError(f"Input 0 must hold records, not elements of {dtype}.")
    require(None not in found, "A record has no columns.")
    return found


@procedure("CreateTensorVector", inputs="0", outputs="1", gradient="undefined")
def create_tensor_vector(op: TorchOperator) -> None:
    """Create an empty list of tensors."""
    op.OutputBlob(0).Reset(TensorVector())


@procedure("TensorVectorSize", inputs="1", outputs="1", gradient="undefined")
def tensor_vector_size(op: TorchOperator) -> None:
    """The number of tensors in a list, int32."""
    op.put_value(0, len(op.Input(0, TensorVector).columns), c10.int32)


@procedure("ConcatTensorVector", inputs="1", outputs="1", gradient="undefined")
def concat_tensor_vector(op: TorchOperator) -> None:
    """The concatenated rows of the tensors in a list."""
    columns = op.Input(0, TensorVector).columns
    require(bool(columns), "The list of tensors must not be empty.")
    put_column(op, 0, joined(columns))


@register_operator(
    "CollectTensor", inputs="2n", outputs="1-*", inplace="0>0*!", gradient="undefined"
)
class CollectTensor(TorchOperator):
    """Sample the received tensors uniformly, at most `num_to_collect` of them.

    Inputs: lists, which are the outputs, then one tensor per list. Tensors received together stay
    together.
    """

    _visited = 0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._most = self.GetSingleArgument("num_to_collect", -1)
        require(self._most > 0, f"num_to_collect must be at least 1, not {self._most}.")

    def RunOnDevice(self) -> None:
        n = self.OutputSize()
        require(
            self.InputSize() == 2 * n, f"There are {n} lists, but {self.InputSize() - n} tensors."
        )
        lists = [self.Input(i, TensorVector).columns for i in range(n)]
        given = [column_of(self.Input(n + i), f"Input {n + i}") for i in range(n)]
        place = self._visited
        if place >= self._most:
            require(
                all(len(one) == self._most for one in lists),
                f"The lists have {[len(one) for one in lists]} tensors, not {self._most} each.",
            )
            place = int(torch.randint(0, self._visited + 1, ()))
        if place < self._most:
            for columns, column in zip(lists, given, strict=True):
                columns[place : place + 1] = [column.kept()]
        self._visited += 1
