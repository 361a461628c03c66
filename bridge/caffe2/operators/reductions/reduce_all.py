# SPDX-License-Identifier: Apache-2.0
"""Reductions to one number, to a number per row, and to indices."""

from __future__ import annotations

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import along_rows
from bridge.caffe2.operators.base.torch_operator import (
    FLOAT,
    FLOATS,
    INT32,
    NUMBERS,
    TorchOperator,
    enforce,
    plain_axis,
)

__all__: list[str] = []


@register_operator("RowwiseMax")
class RowwiseMax(TorchOperator):
    """The maximum of each row: (batch, m, n) -> (batch, m)."""

    dim = 2

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        enforce(x.dim() == 3, f"Input 0 must have three dimensions, not {x.dim()}.")
        if x.numel():
            self.put(0, x.amax(self.dim))
            return
        kept = [size for dim, size in enumerate(x.shape) if dim != self.dim]
        enforce(0 in kept, "The maximum of no elements is undefined.")
        self.out(0, kept, c10.float32)


@register_operator("ColwiseMax")
class ColwiseMax(RowwiseMax):
    """The maximum of each column: (batch, m, n) -> (batch, n)."""

    dim = 1


@register_operator("SumElements")
class SumElements(TorchOperator):
    """The sum of all elements, or their mean with `average`."""

    types: tuple[TypeMeta, ...] = FLOAT

    def RunOnDevice(self) -> None:
        x = self.x(0, self.types)
        total = self.total(x)
        if self.GetSingleArgument("average", False) and x.numel():
            total = total / x.numel()
        self.put(0, total)

    def total(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum."""
        return x.sum(dtype=x.dtype)


@register_operator("SumElementsInt")
class SumElementsInt(TorchOperator):
    """The sum of all elements, int32."""

    def RunOnDevice(self) -> None:
        self.put(0, self.x(0, INT32).sum(dtype=torch.int32))


@register_operator("SumSqrElements")
class SumSqrElements(SumElements):
    """The sum of the squares of all elements, or their mean with `average`."""

    types = FLOATS

    def total(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum of the squares."""
        return x.square().sum()


@register_operator("ReduceTailSum")
class ReduceTailSum(TorchOperator):
    """The sum of each row: (n, ...) -> (n,)."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        enforce(x.dim() > 0, "Input 0 must have at least one dimension.")
        self.put(0, x.reshape(x.size(0), x.numel() // max(x.size(0), 1)).sum(1))


@register_operator("RowMul")
class RowMul(TorchOperator):
    """Each row of input 0 times its number in input 1."""

    def RunOnDevice(self) -> None:
        x, w = self.x(0, FLOAT), self.x(1, FLOAT)
        enforce(
            x.dim() > 0 and w.numel() == x.size(0),
            f"Input 1 must have one number per row of sizes {list(x.shape)}, not {w.numel()}.",
        )
        torch.mul(x, along_rows(w, x), out=self.out(0, x.shape, c10.float32))


class _Arg(TorchOperator):
    """The index of the maximum or minimum along `axis` (-1)."""

    greatest = True

    def RunOnDevice(self) -> None:
        x = self.x(0, NUMBERS)
        axis = plain_axis(self.GetSingleArgument("axis", -1), x.dim())
        keep = self.GetSingleArgument("keepdims", True)
        if not x.numel():
            self.put(0, x.sum(axis, keep).long())
            return
        self.put(0, (torch.argmax if self.greatest else torch.argmin)(x, axis, keep))


@register_operator("ArgMax")
class ArgMax(_Arg):
    """The index of the maximum along `axis` (-1), the first of equal ones."""


@register_operator("ArgMin")
class ArgMin(_Arg):
    """The index of the minimum along `axis` (-1), the first of equal ones."""

    greatest = False
