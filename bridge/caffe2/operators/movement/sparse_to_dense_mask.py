# SPDX-License-Identifier: Apache-2.0
"""SparseToDenseMask, which counts the rows that it skipped in all its runs, and its gradient."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import INT32, INTS, require
from bridge.caffe2.operators.base.rows_and_segments import segment_ids
from bridge.caffe2.operators.base.torch_operator import TorchOperator


@register_operator(
    "SparseToDenseMask", inputs="3-4", outputs="1-2", gradient="$Gradient i0 g0 i3? > 1"
)
class SparseToDenseMask(TorchOperator):
    """For each id in `mask` its value, or the default.

    Inputs: ids, their values, the default, and lengths if there are several rows. Output 1, with
    `return_presence_mask`: whether there was a value.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        mask = self.GetRepeatedArgument("mask")
        require(bool(mask), "The argument mask is missing.")
        require(min(mask) >= 0, "The ids of mask must not be negative.")
        require(len(set(mask)) == len(mask), "The ids of mask must be different.")
        self._column = {one: column for column, one in enumerate(mask)}
        self._skipped_rows = 0

    def RunOnDevice(self) -> None:
        ids = self.x(0, INTS)
        items: list[Any] = []
        values, default = self.load(1, items), self.load(2, items)
        dtype = self.Input(1).dtype()
        fits = ids.dim() == 1 and values.dim() >= 1
        require(fits, "Ids must have one dimension, values at least one.")
        require(len(ids) == values.size(0), "There must be one value per id.")
        require(self.Input(2).dtype() is dtype, "The default must have the type of the values.")
        require(
            (
                default.dim() + 1 == values.dim()
                and default.numel() == values[0:1].numel() // max(len(values[0:1]), 1)
            )
            or not len(values),
            "The default must have the size of a value.",
        )
        sizes: list[int] = [len(self._column)]
        segments = torch.zeros(len(ids), dtype=torch.int64, device=ids.device)
        if self.InputSize() == 4:
            lengths = self.x(3, INT32)
            require(lengths.dim() == 1, "Lengths must have one dimension.")
            segments = segment_ids(lengths, len(ids))
            sizes = [len(lengths), *sizes]
        n = len(self._column)
        rows = sizes[0] if len(sizes) == 2 else 1
        result = default.expand(rows * n, *default.shape).clone()
        present = torch.zeros(rows * n, dtype=torch.bool, device=ids.device)
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
        require(
            self._skipped_rows < most, "Too many rows have negative ids; see max_skipped_indices."
        )
        self.store(0, result.reshape(*sizes, *default.shape), items, dtype)
        if self.GetSingleArgument("return_presence_mask", False):
            self.put(1, present.reshape(sizes))


@operator("SparseToDenseMaskGradient", types={"ids": INTS, "lengths": INT32}, effects=("values",))
def sparse_to_dense_mask_gradient(
    ids: Tensor, dy: Tensor, lengths: Tensor | None = None, *, mask: list[int] | None = None
) -> Tensor:
    """(ids, gradients of dense rows, lengths if there are several) -> dvalues.

    Where an id occurs several times, the last value was used and has the gradient.
    """
    require(bool(mask), "there is the argument mask")
    assert mask is not None
    column = {one: i for i, one in enumerate(mask)}
    require(ids.dim() == 1, "ids have one dimension", ids)
    n = ids.shape[0]
    segments, sizes = [0] * n, [len(column)]
    if lengths is not None:
        segments = segment_ids(lengths, n).tolist()
        sizes = [lengths.shape[0], *sizes]
    require(list(dy.shape[: len(sizes)]) == sizes, f"the gradient's sizes begin with {sizes}", dy)
    rows = dy.reshape(math.prod(sizes), *dy.shape[len(sizes) :])
    places = {
        row * len(column) + column[one]: i
        for i, (one, row) in enumerate(zip(ids.tolist(), segments, strict=True))
        if one in column
    }
    result = dy.new_zeros((n, *rows.shape[1:]))
    if not places:
        return result
    found, chosen = torch.tensor(
        [list(places.values()), list(places)], dtype=torch.int64, device=dy.device
    )
    return result.index_copy(0, found, rows.index_select(0, chosen))
