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
from bridge.caffe2.operators.base.rows_and_segments import rows_at, segment_ids
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.movement import row_kernels


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
        self._mask = mask
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
        lengths = self.x(3, INT32) if self.InputSize() == 4 else None
        last, segments, sizes = _last_ids(ids, lengths, self._mask)
        self._skipped_rows += len(set(segments[(ids < 0).cpu()].tolist()))
        most = self.GetSingleArgument("max_skipped_indices", 50)
        require(
            self._skipped_rows < most, "Too many rows have negative ids; see max_skipped_indices."
        )
        values = values.reshape(len(ids), *default.shape)
        result = rows_at(torch.cat([default.unsqueeze(0), values]), last + 1)
        self.store(0, result.view(*sizes, *default.shape), items, dtype)
        if self.GetSingleArgument("return_presence_mask", False):
            self.put(1, (last >= 0).view(sizes))


def _last_ids(
    ids: Tensor, lengths: Tensor | None, mask: list[int]
) -> tuple[Tensor, Tensor, list[int]]:
    """Return for each place of a dense tensor the position of its last id, or -1.

    Also the row of each id, and the sizes: rows, if there are lengths, and a column for each id of
    the mask.
    """
    n, sizes = ids.shape[0], [len(mask)]
    rows = torch.zeros(n, dtype=torch.int64, device="cpu")
    if lengths is not None:
        require(lengths.dim() == 1, "lengths have one dimension", lengths)
        rows, sizes = segment_ids(lengths, n).cpu(), [lengths.shape[0], len(mask)]
    count = math.prod(sizes)
    given = ids.long().cpu(), rows, *torch.tensor(mask, dtype=torch.int64, device="cpu").sort()
    last = row_kernels.last_of_ids(rows.new_empty(count), *given, n, len(mask), count // len(mask))
    return last.to(ids.device), rows, sizes


@operator("SparseToDenseMaskGradient", types={"ids": INTS, "lengths": INT32}, effects=("values",))
def sparse_to_dense_mask_gradient(
    ids: Tensor, dy: Tensor, lengths: Tensor | None = None, *, mask: list[int] | None = None
) -> Tensor:
    """(ids, gradients of dense rows, lengths if there are several) -> dvalues.

    Where an id occurs several times, the last value was used and has the gradient.
    """
    require(bool(mask), "there is the argument mask")
    assert mask is not None
    require(ids.dim() == 1, "ids have one dimension", ids)
    last, _, sizes = _last_ids(ids, lengths, mask)
    require(list(dy.shape[: len(sizes)]) == sizes, f"the gradient's sizes begin with {sizes}", dy)
    rows = dy.reshape(len(last), *dy.shape[len(sizes) :])
    places = (last >= 0).nonzero().view(-1)
    result = dy.new_zeros((ids.shape[0], *rows.shape[1:]))
    return result.index_copy(0, last[places], rows.index_select(0, places))
