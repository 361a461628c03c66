# SPDX-License-Identifier: Apache-2.0
"""Gradients of sums, means, norms and extremes, and Moments."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOAT, FLOATS, INT32, NUMBERS, normal_axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from torch import Tensor

    from bridge.c10 import TypeMeta

__all__ = ["Moments", "ReduceSumGradient"]


class OverAxes(FloatOperator):
    """An operator over the dimensions that argument `axes` lists, all of them by default."""

    def axes(self, x: Tensor) -> list[int]:
        """Return the dimensions, counted from the front."""
        said = self.GetRepeatedArgument("axes", [0]) if self.HasArgument("axes") else range(x.dim())
        return sorted({normal_axis(axis, x.dim()) for axis in said})

    def kept(self, x: Tensor) -> list[int]:
        """Return the sizes of X with 1 for the dimensions that are reduced."""
        axes = self.axes(x)
        return [1 if i in axes else size for i, size in enumerate(x.shape)]


class ReduceGradient(OverAxes):
    """(dY, X, Y) -> dX. Follows ReduceGradientOp, caffe2/operators/reduce_ops.h, PyTorch 1.8.1."""

    def RunOnDevice(self) -> None:
        x = self.x(1, NUMBERS)
        same = (self.Input(1).dtype(),)
        shape = self.kept(x)
        dy, y = self.x(0, same), self.x(2, same)
        self.enforce(dy.numel() == y.numel(), "dY is of Y's shape", dy, y)
        dx = self.spread(dy.reshape(shape), x, y.reshape(shape))
        self.put(0, dx.expand(x.shape).clone() if dx.shape != x.shape else dx)

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Return dX, which may be left to broadcast; dY and Y have 1 for what was reduced."""
        raise NotImplementedError


@register_operator("ReduceSumGradient")
class ReduceSumGradient(ReduceGradient):
    """dX = dY."""

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return dy.clone()


@register_operator("ReduceMeanGradient")
class ReduceMeanGradient(ReduceGradient):
    """dX = dY over the number of elements."""

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return dy * (y.numel() / max(x.numel(), 1))


@register_operator("ReduceMaxGradient")
class ReduceMaxGradient(ReduceGradient):
    """dX = dY where X is Y, else 0."""

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return dy * (x == y)


@register_operator("ReduceMinGradient")
class ReduceMinGradient(ReduceMaxGradient):
    """dX = dY where X is Y, else 0."""


@register_operator("ReduceL1Gradient")
class ReduceL1Gradient(ReduceGradient):
    """dX = dY * the sign of X."""

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return dy * x.sign()


@register_operator("ReduceL2Gradient")
class ReduceL2Gradient(ReduceGradient):
    """dX = dY * X / Y, and dY where Y is 0, as Caffe2 has it."""

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        found: Tensor = torch.where(y > 0, dy * x / y, dy)
        return found


@register_operator("Moments")
class Moments(OverAxes):
    """X -> mean, variance, over `axes`, both 0 of no elements; argument `keepdims` (1).

    Follows MomentsOp, caffe2/operators/moments_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        axes = self.axes(x)
        keep = bool(self.GetSingleArgument("keepdims", 1))
        if not axes:
            mean, var = x.clone(), torch.zeros_like(x)
        elif not x.numel():
            mean, var = x.sum(axes, keep), x.sum(axes, keep)
        else:
            var, mean = torch.var_mean(x, axes, correction=0, keepdim=keep)
        self.put(0, mean)
        self.put(1, var)


@register_operator("MomentsGradient")
class MomentsGradient(OverAxes):
    """(dmean, dvariance, X, mean) -> dX."""

    def RunOnDevice(self) -> None:
        x = self.x(2)
        shape = self.kept(x)
        dmean, dvar, mean = (self.x(i).reshape(shape) for i in (0, 1, 3))
        share = mean.numel() / max(x.numel(), 1)
        self.put(0, (dmean + 2 * (x - mean) * dvar) * share)


class EndGradient(FloatOperator):
    """(dY, X, perhaps lengths) -> dX of what was reduced over the first or last dimensions.

    Of sums and means input 1 may also be the sizes of X, a list of int64.
    Argument `num_reduce_dim` (1). With lengths (int32) only so many of each row or column counted.
    Follows caffe2/operators/reduce_front_back_sum_mean_ops.h, PyTorch 1.8.1.
    """

    front = True
    mean = False
    lengths = 2
    types: Collection[TypeMeta] = NUMBERS

    def RunOnDevice(self) -> None:
        dy = self.x(0, self.types)
        sizes = self.sizes()
        dims = self.GetSingleArgument("num_reduce_dim", 1)
        self.enforce(0 <= dims <= len(sizes), "X has the dimensions to reduce", dims, sizes)
        split = dims if self.front else len(sizes) - dims
        matrix = torch.Size([sizes[:split].numel(), sizes[split:].numel()])
        along = 0 if self.front else 1
        count = matrix[along]
        self.enforce(dy.numel() == matrix[1 - along], "a gradient for each of Y", dy, sizes)
        spread = dy.reshape(-1).unsqueeze(along).expand(matrix)
        if self.InputSize() > self.lengths:
            length = self.x(self.lengths, INT32).reshape(-1).unsqueeze(along)
            inside = torch.arange(count).unsqueeze(1 - along) < length
            spread = spread * inside
            # A row of which nothing counted stays as it is: 0.
            spread = self.share(spread, length.clamp(min=1)) if self.mean else spread
        elif self.mean and count:
            spread = self.share(spread, count)
        found = self.chosen(spread, matrix).reshape(sizes)
        self.put(0, found.clone(memory_format=torch.contiguous_format))

    def sizes(self) -> torch.Size:
        """Return those of X: of input 1, or what a list of int64 there says."""
        given = self.Input(1)
        if given.dim() != 1 or given.dtype() is not c10.int64 or self.types is FLOAT:
            return torch.Size(given.sizes())
        sizes = self.integers(1)
        self.enforce(min(sizes, default=0) >= 0, "sizes are not negative", sizes)
        return torch.Size(sizes)

    def share(self, dy: Tensor, count: Tensor | int) -> Tensor:
        """Divide; whole numbers towards zero."""
        rounding = None if dy.is_floating_point() else "trunc"
        found: Tensor = dy.div(count, rounding_mode=rounding)
        return found

    def chosen(self, spread: Tensor, matrix: torch.Size) -> Tensor:
        """Return what of the gradients goes to X."""
        return spread


@register_operator("ReduceFrontSumGradient")
class ReduceFrontSumGradient(EndGradient):
    """Of sums over the first dimensions; as EndGradient."""


@register_operator("ReduceFrontMeanGradient")
class ReduceFrontMeanGradient(EndGradient):
    """Of means over the first dimensions; as EndGradient."""

    mean = True


@register_operator("ReduceBackSumGradient")
class ReduceBackSumGradient(EndGradient):
    """Of sums over the last dimensions; as EndGradient."""

    front = False


@register_operator("ReduceBackMeanGradient")
class ReduceBackMeanGradient(EndGradient):
    """Of means over the last dimensions; as EndGradient."""

    front = False
    mean = True


@register_operator("ReduceFrontMaxGradient")
class ReduceFrontMaxGradient(EndGradient):
    """(dY, X, Y, perhaps lengths) -> dX: dY where X is Y, else 0; else as EndGradient."""

    lengths = 3
    types = FLOAT

    def chosen(self, spread: Tensor, matrix: torch.Size) -> Tensor:
        x, y = self.x(1).reshape(matrix), self.x(2).reshape(-1)
        return spread * (x == y.unsqueeze(0 if self.front else 1))


@register_operator("ReduceBackMaxGradient")
class ReduceBackMaxGradient(ReduceFrontMaxGradient):
    """The same over the last dimensions."""

    front = False


@register_operator("SumElementsGradient")
class SumElementsGradient(FloatOperator):
    """(X, dY: ()) -> dX = dY, over the number of elements with `average`."""

    def RunOnDevice(self) -> None:
        x, dy = self.x(0), self.x(1, FLOATS)
        self.enforce(dy.numel() == 1, "there is one gradient", dy)
        count = max(x.numel(), 1) if self.GetSingleArgument("average", False) else 1
        self.out(0, x.shape).copy_(dy.view(()) / count)


class ExtremesGradient(FloatOperator):
    """(X: (n, rows, columns), Y, dY) -> dX: dY where X is Y, else 0."""

    along = 2

    def RunOnDevice(self) -> None:
        x, y, dy = self.x(0), self.x(1), self.x(2)
        self.enforce(x.dim() == 3, "X has three dimensions", x)
        chosen = x == y.unsqueeze(self.along)
        self.put(0, dy.unsqueeze(self.along) * chosen)


@register_operator("RowwiseMaxGradient")
class RowwiseMaxGradient(ExtremesGradient):
    """Of the largest of each row; as ExtremesGradient."""


@register_operator("ColwiseMaxGradient")
class ColwiseMaxGradient(ExtremesGradient):
    """Of the largest of each column; as ExtremesGradient."""

    along = 1
