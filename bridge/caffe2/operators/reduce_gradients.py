# SPDX-License-Identifier: Apache-2.0
"""Gradients of sums, means, norms and extremes, and Moments."""

from __future__ import annotations

from bridge.caffe2.operators.float_operator import FloatOperator
from bridge.caffe2.operators.lazy_torch import torch
from bridge.caffe2.operators.torch_operator import FLOATS, INT32, NUMBERS, normal_axis
from bridge.caffe2.registry import register_operator

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Moments", "ReduceSumGradient"]


class OverAxes(FloatOperator):
    """An operator over the dimensions that argument `axes` lists, all of them by default."""

    def axes(self, x: Tensor) -> list[int]:
        """Give the dimensions, counted from the front."""
        said = self.GetRepeatedArgument("axes", [0]) if self.HasArgument("axes") else range(x.dim())
        return sorted({normal_axis(axis, x.dim()) for axis in said})

    def kept(self, x: Tensor) -> list[int]:
        """Give the sizes of X with 1 for the dimensions that are reduced."""
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
        """Give dX, which may be left to broadcast; dY and Y have 1 for what was reduced."""
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
    """dX = dY * X / Y, 0 where Y is 0."""

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        found: Tensor = torch.where(y == 0, x.new_zeros(()), dy * x / y)
        return found


@register_operator("Moments")
class Moments(OverAxes):
    """X -> mean, variance, over `axes`; argument `keepdims` (1).

    Follows MomentsOp, caffe2/operators/moments_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        axes = self.axes(x)
        keep = bool(self.GetSingleArgument("keepdims", 1))
        if not axes:
            mean, var = x.clone(), torch.zeros_like(x)
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

    Argument `num_reduce_dim` (1). With lengths (int32) only so many of each row or column counted.
    Follows caffe2/operators/reduce_front_back_sum_mean_ops.h, PyTorch 1.8.1.
    """

    front = True
    mean = False
    lengths = 2

    def RunOnDevice(self) -> None:
        dy, x = self.x(0), self.x(1)
        dims = self.GetSingleArgument("num_reduce_dim", 1)
        self.enforce(0 <= dims <= x.dim(), "X has the dimensions to reduce", dims, x)
        split = dims if self.front else x.dim() - dims
        rows = 1
        for size in x.shape[:split]:
            rows *= size
        matrix = x.reshape(rows, -1) if x.numel() else x.reshape(rows, 0)
        along = 0 if self.front else 1
        count = matrix.shape[along]
        self.enforce(dy.numel() == matrix.shape[1 - along], "a gradient for each of Y", dy, x)
        spread = dy.reshape(-1).unsqueeze(along).expand(matrix.shape)
        if self.InputSize() > self.lengths:
            length = self.x(self.lengths, INT32).reshape(-1).unsqueeze(along)
            inside = torch.arange(count).unsqueeze(1 - along) < length
            spread = spread * inside
            spread = spread / length if self.mean else spread
        elif self.mean:
            spread = spread / count
        self.put(0, self.chosen(spread, matrix).reshape(x.shape).clone())

    def chosen(self, spread: Tensor, matrix: Tensor) -> Tensor:
        """Give what of the gradients goes to X."""
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

    def chosen(self, spread: Tensor, matrix: Tensor) -> Tensor:
        return spread * (matrix == self.x(2).reshape(-1).unsqueeze(0 if self.front else 1))


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
