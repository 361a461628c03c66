# SPDX-License-Identifier: Apache-2.0
"""Reductions over the dimensions listed in `axes`."""

from __future__ import annotations

from bridge.c10 import TypeMeta
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOAT, NUMBERS, TorchOperator, normal_axis

__all__: list[str] = []


class _Reduce(TorchOperator):
    """A reduction over the dimensions `axes` (all), kept with size 1 with `keepdims` (True)."""

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
        """Reduce `x`, which is not empty."""
        raise NotImplementedError

    def of_nothing(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Reduce `x`, which is empty."""
        return x.sum(axes, keep, dtype=x.dtype)


@register_operator("ReduceSum")
class ReduceSum(_Reduce):
    """Sums."""

    types = NUMBERS

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Return the sums."""
        return torch.sum(x, axes, keep, dtype=x.dtype)


@register_operator("ReduceMean")
class ReduceMean(_Reduce):
    """Means."""

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Return the means."""
        return torch.mean(x, axes, keep)


class _Extreme(_Reduce):
    """The maximum or minimum; of no elements the opposite limit of the type."""

    types = NUMBERS
    limit = "min"

    def of_nothing(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Return the limit of the type for each result."""
        info = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
        return super().of_nothing(x, axes, keep).fill_(getattr(info, self.limit))


@register_operator("ReduceMax")
class ReduceMax(_Extreme):
    """The maxima."""

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Return the maxima."""
        return torch.amax(x, axes, keep)


@register_operator("ReduceMin")
class ReduceMin(_Extreme):
    """The minima."""

    limit = "max"

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Return the minima."""
        return torch.amin(x, axes, keep)


@register_operator("ReduceL1")
class ReduceL1(_Reduce):
    """Sums of absolute values."""

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Return the sums of absolute values."""
        return torch.sum(x.abs(), axes, keep)


@register_operator("ReduceL2")
class ReduceL2(_Reduce):
    """Square roots of sums of squares."""

    def reduce(self, x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        """Return the 2-norms."""
        return torch.linalg.vector_norm(x, 2, axes, keep)
