# SPDX-License-Identifier: Apache-2.0
"""Sparse values converted to dense rows, and vice versa."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import row_indices, segment_ids
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


@register_operator("SparseToDense")
class SparseToDense(TorchOperator):
    """The values of input 1 summed at the rows in input 0.

    The number of rows is `output_first_dim`, that of input 2, or the greatest index + 1.
    """

    def RunOnDevice(self) -> None:
        indices, values = self.x(0, INTS), self.x(1, (c10.float32, *INTS))
        enforce(
            indices.dim() == 1 and values.dim() >= 1,
            "Indices must have one dimension, values at least one.",
        )
        enforce(
            len(indices) == values.size(0),
            f"There are {len(indices)} indices, but {values.size(0)} values.",
        )
        n = self.GetSingleArgument("output_first_dim", 0)
        if n > 0:
            enforce(
                self.InputSize() == 2, "The number of rows is an argument or an input, not both."
            )
        elif self.InputSize() == 3:
            enforce(self.Input(2).dim() >= 1, "Input 2 must have at least one dimension.")
            n = self.Input(2).size(0)
        else:
            n = int(indices.max()) + 1 if len(indices) else 0
        result = values.new_zeros((max(n, 0), *values.shape[1:]))
        self.put(0, result.index_add_(0, row_indices(indices, n), values) if n else result)


@register_operator("SparseToDenseMask")
class SparseToDenseMask(AnyTypeOperator):
    """For each id in `mask` its value, or the default.

    Inputs: ids, their values, the default, and lengths if there are several rows. Output 1, with
    `return_presence_mask`: whether there was a value.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        mask = self.GetRepeatedArgument("mask")
        enforce(bool(mask), "The argument mask is missing.")
        enforce(min(mask) >= 0, "The ids of mask must not be negative.")
        enforce(len(set(mask)) == len(mask), "The ids of mask must be different.")
        self._column = {one: column for column, one in enumerate(mask)}
        self._skipped_rows = 0

    def move(self) -> None:
        ids = self.x(0, INTS)
        values, default = self.load(1), self.load(2)
        dtype = self.Input(1).dtype()
        enforce(
            ids.dim() == 1 and values.dim() >= 1,
            "Ids must have one dimension, values at least one.",
        )
        enforce(len(ids) == values.size(0), "There must be one value per id.")
        enforce(self.Input(2).dtype() is dtype, "The default must have the type of the values.")
        enforce(
            (
                default.dim() + 1 == values.dim()
                and default.numel() == values[0:1].numel() // max(len(values[0:1]), 1)
            )
            or not len(values),
            "The default must have the size of a value.",
        )
        sizes: list[int] = [len(self._column)]
        segments = torch.zeros(len(ids), dtype=torch.int64)
        if self.InputSize() == 4:
            lengths = self.x(3, INT32)
            enforce(lengths.dim() == 1, "Lengths must have one dimension.")
            segments = segment_ids(lengths, len(ids))
            sizes = [len(lengths), *sizes]
        n = len(self._column)
        rows = sizes[0] if len(sizes) == 2 else 1
        result = default.expand(rows * n, *default.shape).clone()
        present = torch.zeros(rows * n, dtype=torch.bool)
        invalid = set()
        for i, (one, row) in enumerate(zip(ids.tolist(), segments.tolist(), strict=True)):
            if one < 0:
                invalid.add(row)
            elif one in self._column:
                place = row * n + self._column[one]
                result[place] = values[i]
                present[place] = True
        self._skipped_rows += len(invalid)
        most = self.GetSingleArgument("max_skipped_indices", 50)
        enforce(
            self._skipped_rows < most, "Too many rows have negative ids; see max_skipped_indices."
        )
        self.store(0, result.reshape(*sizes, *default.shape), dtype)
        if self.GetSingleArgument("return_presence_mask", False):
            self.put(1, present.reshape(sizes))


class _Batch(TorchOperator):
    """An operator on rows of indices, input 1, with lengths in input 0."""

    def places(self, width: int) -> torch.Tensor:
        """Return the flat indices in a matrix with rows of `width`."""
        lengths, indices = self.x(0, INT64), self.x(1, INT64)
        enforce(
            lengths.dim() == 1 and indices.dim() == 1,
            "Lengths and indices must have one dimension.",
        )
        ids = segment_ids(lengths, len(indices))
        return ids * width + row_indices(indices, width)


@register_operator("BatchSparseToDense")
class BatchSparseToDense(_Batch):
    """Rows with values at their indices, and `default_value` (0) elsewhere.

    Inputs: lengths, indices, values, optionally a matrix. The rows have `dense_last_dim` elements,
    or as many as those of the matrix.
    """

    def RunOnDevice(self) -> None:
        values = self.x(2, FLOAT)
        width = self.GetSingleArgument("dense_last_dim", -1)
        if self.InputSize() == 4:
            enforce(self.Input(3).dim() == 2, "Input 3 must have two dimensions.")
            given = self.Input(3).size(1)
            enforce(
                width in (-1, given),
                f"dense_last_dim is {width}, but the rows of input 3 have {given} elements.",
            )
            width = given
        enforce(width >= 1, "The rows must have at least one element.")
        enforce(values.numel() == self.Input(1).numel(), "There must be one value per index.")
        places = self.places(width)
        n = self.Input(0).numel()
        result = values.new_full((n * width,), self.GetSingleArgument("default_value", 0.0))
        result[places] = values.reshape(-1)
        self.put(0, result.view(n, width))


@register_operator("BatchDenseToSparse")
class BatchDenseToSparse(_Batch):
    """The elements of a matrix at indices of its rows; inputs: lengths, indices, matrix."""

    def RunOnDevice(self) -> None:
        dense = self.x(2, FLOAT)
        enforce(dense.dim() == 2, "Input 2 must have two dimensions.")
        enforce(self.Input(0).numel() == dense.size(0), "There must be one length per row.")
        self.put(0, dense.reshape(-1)[self.places(dense.size(1))])


@register_operator("DenseVectorToIdList")
class DenseVectorToIdList(TorchOperator):
    """The columns of each row that are not 0: their numbers, and their indices."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        enforce(x.dim() == 2, "Input 0 must have two dimensions.")
        there = (x + 0.5).int() != 0
        self.put(0, there.sum(1).int())
        self.put(1, there.nonzero()[:, 1].int())
