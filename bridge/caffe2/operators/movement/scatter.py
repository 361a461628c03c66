# SPDX-License-Identifier: Apache-2.0
"""Rows scattered to indices, and rows removed."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import row_indices
from bridge.caffe2.operators.base.torch_operator import (
    FLOAT,
    INT64,
    INTS,
    TorchOperator,
    enforce,
    normal_axis,
)

__all__: list[str] = []


@register_operator("ScatterAssign")
class ScatterAssign(TorchOperator):
    """Assign the rows of input 2 to the rows of input 0 at the indices in input 1, in place."""

    def RunOnDevice(self) -> None:
        types = (c10.float32, c10.float16, c10.uint8, c10.int32, c10.int64, c10.float64)
        x, indices = self.x(0, types), self.x(1, INTS)
        slices = self.x(2, (self.Input(0).dtype(),))
        enforce(x.dim() > 0, "Input 0 must have at least one dimension.")
        places = row_indices(indices, x.size(0))
        row = x.numel() // max(x.size(0), 1)
        enforce(
            slices.numel() == row * len(places),
            f"There are {slices.numel()} elements, not {len(places)} rows of {row}.",
        )
        if len(places):
            x[places] = slices.reshape(len(places), *x.shape[1:])


@register_operator("ScatterWeightedSum")
class ScatterWeightedSum(TorchOperator):
    """Scale rows of input 0 and add weighted rows to them, in place.

    Inputs: x, its weight, indices, rows, their weight, rows, their weight, ...
    """

    def RunOnDevice(self) -> None:
        x, indices = self.x(0, FLOAT), self.x(2, INTS)
        enforce(x.numel() > 0 and x.dim() > 0, "Input 0 must have at least one dimension.")
        enforce(self.InputSize() % 2 == 1, "Each input of rows must be followed by its weight.")
        places = row_indices(indices, x.size(0))
        weight = self._weight(1)
        added = []
        for i in range(3, self.InputSize(), 2):
            rows = self.x(i, FLOAT)
            enforce(
                rows.numel() == len(places) * (x.numel() // x.size(0)),
                f"Input {i} has {rows.numel()} elements, which are not {len(places)} rows.",
            )
            added.append((rows.reshape(len(places), *x.shape[1:]), self._weight(i + 1)))
        # one by one: a row that occurs twice is scaled twice
        if weight != 1:
            for place in places.tolist():
                x[place] *= weight
        for rows, factor in added:
            x.index_add_(0, places, rows, alpha=factor)

    def _weight(self, i: int) -> float:
        weight = self.x(i, FLOAT)
        enforce(weight.numel() == 1, f"Input {i}, a weight, must have one element.")
        return float(weight.item())


@register_operator("Scatter")
class Scatter(AnyTypeOperator):
    """A copy of input 0 with the elements of input 2 at the indices in input 1 along `axis` (1).

    Indices may have smaller sizes in other dimensions. The dimensions before the axis, and those
    after it, are each taken as one, whose first elements the indices refer to.
    Follows ScatterOp, caffe2/operators/utility_ops.h, PyTorch 1.8.1.
    """

    def move(self) -> None:
        indices = self.x(1, INTS)
        data, updates = self.load(0), self.load(2)
        dtype = self.Input(0).dtype()
        enforce(self.Input(2).dtype() is dtype, "Inputs 0 and 2 must have the same type.")
        axis = normal_axis(self.GetSingleArgument("axis", 1), data.dim())
        if not data.numel():
            self.store(0, data.clone(), dtype)
            return
        enforce(
            indices.dim() == data.dim() == updates.dim() and indices.numel() == updates.numel(),
            "Indices and updates must have the same size, and as many dimensions as the data.",
        )
        row_indices(indices, data.size(axis))
        runs, places = (_in_runs(one, axis) for one in (data.clone(), indices.long()))
        enforce(
            places.size(0) <= runs.size(0) and places.size(2) <= runs.size(2),
            f"Indices of sizes {list(indices.shape)} do not fit into {list(data.shape)}.",
        )
        runs.scatter_(1, places, updates.reshape(places.shape))
        self.store(0, runs.view(data.shape), dtype)


def _in_runs(x: torch.Tensor, axis: int) -> torch.Tensor:
    """Return a view of `x` with three dimensions: those before `axis`, `axis`, those after it."""
    return x.reshape(x.shape[:axis].numel(), x.size(axis), x.shape[axis + 1 :].numel())


@register_operator("CopyRowsToTensor")
class CopyRowsToTensor(TorchOperator):
    """Assign input 2, one row, to the rows of input 0 at the indices in input 1, in place."""

    def RunOnDevice(self) -> None:
        x = self.x(0, (c10.float16, c10.float32, c10.float64, *INTS))
        indices, row = self.x(1, INT64), self.x(2, (self.Input(0).dtype(),))
        enforce(x.dim() == 2, "Input 0 must have two dimensions.")
        enforce(indices.dim() == 1 and row.dim() == 1, "Indices and row must have one dimension.")
        enforce(
            len(row) == x.size(1),
            f"The row has {len(row)} elements, but those of input 0 have {x.size(1)}.",
        )
        x[row_indices(indices, x.size(0))] = row


@register_operator("RemoveDataBlocks")
class RemoveDataBlocks(AnyTypeOperator):
    """The rows of input 0 without those at the indices in input 1."""

    def move(self) -> None:
        if self.Input(1).dim() and not self.Input(1).size(0):  # of any type
            self.store_reshaped(self.Input(0).sizes())
            return
        indices = self.x(1, INTS)
        x = self.load(0)
        enforce(
            x.dim() > 0 and indices.dim() == 1,
            "Input 1 must have one dimension, input 0 at least one.",
        )
        keep = torch.ones(x.size(0), dtype=torch.bool)
        keep[row_indices(indices, x.size(0))] = False
        self.store(0, x[keep], self.Input(0).dtype())
