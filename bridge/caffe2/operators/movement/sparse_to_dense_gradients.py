# SPDX-License-Identifier: Apache-2.0
"""The gradient of SparseToDenseMask."""

from __future__ import annotations

import math

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import segment_ids
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT32, INTS, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("SparseToDenseMaskGradient")
class SparseToDenseMaskGradient(TorchOperator):
    """(ids, gradients of dense rows, lengths if there are several) -> dvalues.

    Where an id occurs several times, the last value was used and has the gradient.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        mask = self.GetRepeatedArgument("mask")
        enforce(bool(mask), "The argument mask is missing.")
        self._column = {one: column for column, one in enumerate(mask)}

    def RunOnDevice(self) -> None:
        ids, gradients = self.x(0, INTS), self.x(1, FLOAT)
        enforce(ids.dim() == 1, "Ids must have one dimension.")
        segments = torch.zeros(len(ids), dtype=torch.int64)
        sizes = [len(self._column)]
        if self.InputSize() > 2:
            lengths = self.x(2, INT32)
            segments = segment_ids(lengths, len(ids))
            sizes = [len(lengths), *sizes]
        enforce(
            list(gradients.shape[: len(sizes)]) == sizes,
            f"Gradients of sizes {list(gradients.shape)} must begin with the sizes {sizes}.",
        )
        value = list(gradients.shape[len(sizes) :])
        rows = gradients.reshape(math.prod(sizes), *value)
        places = {
            row * len(self._column) + self._column[one]: i
            for i, (one, row) in enumerate(zip(ids.tolist(), segments.tolist(), strict=True))
            if one in self._column
        }
        result = gradients.new_zeros(len(ids), *value)
        if places:
            result[list(places.values())] = rows[list(places)]
        self.put(0, result)
