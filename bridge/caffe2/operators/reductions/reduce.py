# SPDX-License-Identifier: Apache-2.0
"""Sums, means, extremes over dimensions."""

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
    normal_axis,
)

__all__: list[str] = []


class _Reduce(TorchOperator):
    """A function over the dimensions `axes`, all if none are named; of size 1 with `keepdims`."""

    types: tuple[TypeMeta, ...] = FLOAT

    def RunOnDevice(self) -> None:
        x = self.x(0, self.types)
        named = self.GetRepeatedArgument("axes") or range(x.dim())
        axes = sorted({normal_axis(axis, x.dim()) for axis in named})
        keep = self.GetSingleArgument("keepdims", True)
        if not axes:
            self.put(0, self.one(x))
            return
        result = self.reduce(x, axes, keep) if x.numel() else self.of_nothing(x, axes, keep)
        self.put(0, result)

    def one(self, x: torch.Tensor) -> torch.Tensor:
        """Reduce a tensor without dimensions."""
        return self.reduce(x.reshape(1), [0], False)

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Reduce `x`, which has elements."""
        raise NotImplementedError

    def of_nothing(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Reduce `x`, which has none."""
        return x.sum(axes, keep, dtype=x.dtype)


@register_operator("ReduceSum")
class ReduceSum(_Reduce):
    """Sums."""

    types = NUMBERS

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Add up."""
        return torch.sum(x, axes, keep, dtype=x.dtype)


@register_operator("ReduceMean")
class ReduceMean(_Reduce):
    """Means."""

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Average."""
        return torch.mean(x, axes, keep)


class _Extreme(_Reduce):
    """The greatest or the least elements; of none what no element of the type is beyond."""

    types = NUMBERS
    limit = "min"

    def of_nothing(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Return the limit of the type for each result."""
        info = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
        return super().of_nothing(x, axes, keep).fill_(getattr(info, self.limit))


@register_operator("ReduceMax")
class ReduceMax(_Extreme):
    """The greatest elements."""

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Take the greatest."""
        return torch.amax(x, axes, keep)


@register_operator("ReduceMin")
class ReduceMin(_Extreme):
    """The least elements."""

    limit = "max"

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Take the least."""
        return torch.amin(x, axes, keep)


@register_operator("ReduceL1")
class ReduceL1(_Reduce):
    """Sums of absolute values."""

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Add up."""
        return torch.sum(x.abs(), axes, keep)


@register_operator("ReduceL2")
class ReduceL2(_Reduce):
    """Square roots of sums of squares."""

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Take the norm."""
        return torch.linalg.vector_norm(x, 2, axes, keep)


class _FrontOrBack(TorchOperator):
    """A function over the first or the last `num_reduce_dim` dimensions.

    Input 1: how many of the elements count, for each of the others; the first one counts always.
    """

    types: tuple[TypeMeta, ...] = NUMBERS
    front = True

    def RunOnDevice(self) -> None:
        x = self.x(0, self.types)
        n = self.GetSingleArgument("num_reduce_dim", 1)
        enforce(0 <= n <= x.dim(), f"{n} dimensions are not within {x.dim()}.")
        kept = x.shape[n:] if self.front else x.shape[: x.dim() - n]
        if not x.numel():
            self.put(0, x.new_zeros(kept))
            return
        # one row for each result
        rows = x.reshape(-1, kept.numel()).t() if self.front else x.reshape(kept.numel(), -1)
        lengths = torch.full((kept.numel(),), rows.size(1))
        if self.InputSize() > 1:
            lengths = self.x(1, INT32)
            enforce(n == 1, "With lengths one dimension is reduced.")
            enforce(
                lengths.numel() == kept.numel(),
                f"{lengths.numel()} lengths are given for {kept.numel()} results.",
            )
            lengths = lengths.reshape(-1)
            enforce(
                bool((lengths <= rows.size(1)).all()),
                f"A length is greater than the {rows.size(1)} elements there are.",
            )
        self.put(0, self.reduce(rows, lengths).to(x.dtype).reshape(kept))

    def counting(self, rows: torch.Tensor, lengths: torch.Tensor, other: float) -> torch.Tensor:
        """Return the rows with `other` in the place of what does not count."""
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
        """Add up."""
        return self.counting(rows, lengths, 0).sum(1, dtype=rows.dtype)


@register_operator("ReduceBackSum")
class ReduceBackSum(ReduceFrontSum):
    """Sums over the last dimensions."""

    front = False


@register_operator("ReduceFrontMean")
class ReduceFrontMean(ReduceFrontSum):
    """Means over the first dimensions; of integers, towards zero."""

    def reduce(self, rows: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Average."""
        total = super().reduce(rows, lengths)
        if total.is_floating_point():
            return total / lengths
        enforce(bool((lengths > 0).all()), "The mean of no integers is taken.")
        return torch.div(total, lengths, rounding_mode="trunc")


@register_operator("ReduceBackMean")
class ReduceBackMean(ReduceFrontMean):
    """Means over the last dimensions."""

    front = False


@register_operator("ReduceFrontMax")
class ReduceFrontMax(_FrontOrBack):
    """The greatest elements over the first dimensions."""

    types = FLOAT

    def reduce(self, rows: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Take the greatest."""
        return self.counting(rows, lengths, float("-inf")).amax(1)


@register_operator("ReduceBackMax")
class ReduceBackMax(ReduceFrontMax):
    """The greatest elements over the last dimensions."""

    front = False
