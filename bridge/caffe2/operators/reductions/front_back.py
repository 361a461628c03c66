# SPDX-License-Identifier: Apache-2.0
"""Reductions over the first or the last dimensions."""

from __future__ import annotations

from bridge.c10 import TypeMeta
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import (
    FLOAT,
    INT32,
    NUMBERS,
    TorchOperator,
    enforce,
)

__all__: list[str] = []


class _FrontOrBack(TorchOperator):
    """A reduction over the first or the last `num_reduce_dim` dimensions.

    Input 1: the number of elements that count for each result, at least one.
    """

    types: tuple[TypeMeta, ...] = NUMBERS
    front = True

    def RunOnDevice(self) -> None:
        x = self.x(0, self.types)
        n = self.GetSingleArgument("num_reduce_dim", 1)
        enforce(0 <= n <= x.dim(), f"num_reduce_dim is {n}, out of range for {x.dim()} dimensions.")
        kept = x.shape[n:] if self.front else x.shape[: x.dim() - n]
        if not x.numel():
            self.put(0, x.new_zeros(kept))
            return
        # one row per result
        rows = x.reshape(-1, kept.numel()).t() if self.front else x.reshape(kept.numel(), -1)
        lengths = torch.full((kept.numel(),), rows.size(1))
        if self.InputSize() > 1:
            lengths = self.x(1, INT32)
            enforce(n == 1, "With lengths, num_reduce_dim must be 1.")
            enforce(
                lengths.numel() == kept.numel(),
                f"There are {lengths.numel()} lengths, but {kept.numel()} results.",
            )
            lengths = lengths.reshape(-1)
            enforce(
                bool((lengths <= rows.size(1)).all()),
                f"A length is greater than the {rows.size(1)} elements there are.",
            )
        self.put(0, self.reduce(rows, lengths).to(x.dtype).reshape(kept))

    def counting(self, rows: torch.Tensor, lengths: torch.Tensor, other: float) -> torch.Tensor:
        """Return the rows with elements beyond their lengths replaced by `other`."""
        if self.InputSize() < 2:
            return rows
        beyond = torch.arange(rows.size(1)) >= lengths.clamp(min=1)[:, None]
        return rows.masked_fill(beyond, other)

    def reduce(self, rows: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Reduce each row."""
        raise NotImplementedError


@register_operator("ReduceFrontSum")
class ReduceFrontSum(_FrontOrBack):
    """Sums over the first dimensions."""

    def reduce(self, rows: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return the sums."""
        return self.counting(rows, lengths, 0).sum(1, dtype=rows.dtype)


@register_operator("ReduceBackSum")
class ReduceBackSum(ReduceFrontSum):
    """Sums over the last dimensions."""

    front = False


@register_operator("ReduceFrontMean")
class ReduceFrontMean(ReduceFrontSum):
    """Means over the first dimensions; of integers, rounded towards zero."""

    def reduce(self, rows: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return the means."""
        total = super().reduce(rows, lengths)
        if total.is_floating_point():
            return total / lengths
        enforce(bool((lengths > 0).all()), "The mean of no integers is undefined.")
        return torch.div(total, lengths, rounding_mode="trunc")


@register_operator("ReduceBackMean")
class ReduceBackMean(ReduceFrontMean):
    """Means over the last dimensions."""

    front = False


@register_operator("ReduceFrontMax")
class ReduceFrontMax(_FrontOrBack):
    """The maxima over the first dimensions."""

    types = FLOAT

    def reduce(self, rows: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return the maxima."""
        return self.counting(rows, lengths, float("-inf")).amax(1)


@register_operator("ReduceBackMax")
class ReduceBackMax(ReduceFrontMax):
    """The maxima over the last dimensions."""

    front = False
