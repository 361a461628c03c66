# SPDX-License-Identifier: Apache-2.0
"""Rows partitioned by keys, and merged again."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import segment_ids
from bridge.caffe2.operators.base.torch_operator import INT32, INTS, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


class _Partition(AnyTypeOperator):
    """Each input partitioned by the remainder of keys, in as many parts as it has outputs."""

    key = 0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        enforce(
            self.OutputSize() % self.InputSize() == 0,
            f"{self.OutputSize()} outputs are not a multiple of {self.InputSize()} inputs.",
        )
        self._parts = self.OutputSize() // self.InputSize()

    def partition(self) -> torch.Tensor:
        """Set the outputs to their parts; return the part of each key."""
        keys = self.x(self.key, INTS)
        parts = torch.remainder(keys, self._parts)
        flat = parts.reshape(-1)
        for i in range(self.key, self.InputSize()):
            x, dtype = self.load(i), self.Input(i).dtype()
            enforce(
                x.shape[: keys.dim()] == keys.shape,
                f"The sizes {list(x.shape)} of input {i} must begin with {list(keys.shape)}.",
            )
            rows = x.reshape(keys.numel(), *x.shape[keys.dim() :])
            if i == self.key and self.GetSingleArgument("pack_first_input", 0):
                rows = torch.div(rows - flat, self._parts, rounding_mode="trunc")
            for part in range(self._parts):
                self.store(part * self.InputSize() + i, rows[flat == part], dtype)
        return flat


@register_operator("Partition")
class Partition(_Partition):
    """Partition keys, input 0, and the rows that belong to them."""

    def move(self) -> None:
        enforce(self.Input(0).dim() >= 1, "Input 0 must have at least one dimension.")
        self.partition()


@register_operator("LengthsPartition")
class LengthsPartition(_Partition):
    """Partition segments of keys, input 1, with their lengths, input 0."""

    key = 1

    def move(self) -> None:
        enforce(self.Input(1).dim() == 1, "Input 1 must have one dimension.")
        if self._parts == 1:
            for i in range(self.InputSize()):
                self.store_reshaped(self.Input(i).sizes(), i, i)
            return
        lengths = self.x(0, INT32).reshape(-1)
        ids = segment_ids(lengths, self.Input(1).numel())
        flat = self.partition()
        for part in range(self._parts):
            counts = torch.bincount(ids[flat == part], minlength=len(lengths))
            self.put(part * self.InputSize(), counts.int())


@register_operator("GatherByKey")
class GatherByKey(AnyTypeOperator):
    """The inverse of Partition: the rows of inputs 1, 2, ... in the order of the keys."""

    def move(self) -> None:
        keys = self.x(0, INTS)
        n = self.InputSize() - 1
        enforce(keys.dim() == 1, "Input 0 must have one dimension.")
        dtype = self.Input(1).dtype()
        parts = [self.load(i) for i in range(1, n + 1)]
        for i, part in enumerate(parts):
            enforce(
                self.Input(i + 1).dtype() is dtype
                and part.dim() >= 1
                and part.shape[1:] == parts[0].shape[1:],
                f"Inputs 1 and {i + 1} must have the same type and row sizes.",
            )
        flat = torch.remainder(keys, n)
        result = parts[0].new_empty((len(keys), *parts[0].shape[1:]))
        for i, part in enumerate(parts):
            mask = flat == i
            enforce(
                int(mask.sum()) == part.size(0),
                f"{int(mask.sum())} keys belong to input {i + 1}, which has {part.size(0)} rows.",
            )
            result[mask] = part
        self.store(0, result, dtype)
