# SPDX-License-Identifier: Apache-2.0
"""Gradients of reductions over listed dimensions, of SumElements and of row and column maxima."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOATS, NUMBERS, normal_axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor


__all__ = ["ReduceSumGradient"]


class OverAxes(FloatOperator):
    """An operator over the dimensions in the argument `axes`, by default all."""

    def axes(self, x: Tensor) -> list[int]:
        """Return the dimensions, counted from the front."""
        axes = self.GetRepeatedArgument("axes", [0]) if self.HasArgument("axes") else range(x.dim())
        return sorted({normal_axis(axis, x.dim()) for axis in axes})

    def kept(self, x: Tensor) -> list[int]:
        """Return the sizes of X with 1 for the reduced dimensions."""
        axes = self.axes(x)
        return [1 if i in axes else size for i, size in enumerate(x.shape)]


class ReduceGradient(OverAxes):
    """(dY, X, Y) -> dX.

    Follows ReduceGradientOp, caffe2/operators/reduce_ops.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(1, NUMBERS)
        same = (self.Input(1).dtype(),)
        shape = self.kept(x)
        dy, y = self.x(0, same), self.x(2, same)
        self.enforce(dy.numel() == y.numel(), "dY has the shape of Y", dy, y)
        dx = self.spread(dy.reshape(shape), x, y.reshape(shape))
        self.put(0, dx.expand(x.shape).clone() if dx.shape != x.shape else dx)

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Return dX, which may have to be broadcast; dY and Y have size 1 where reduced."""
        raise NotImplementedError


@register_operator("ReduceSumGradient")
class ReduceSumGradient(ReduceGradient):
    """dX = dY."""

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return dy.clone()


@register_operator("ReduceMeanGradient")
class ReduceMeanGradient(ReduceGradient):
    """dX = dY / the number of elements."""

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return dy * (y.numel() / max(x.numel(), 1))


@register_operator("ReduceMaxGradient")
class ReduceMaxGradient(ReduceGradient):
    """dX = dY where X equals Y, else 0."""

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return dy * (x == y)


@register_operator("ReduceMinGradient")
class ReduceMinGradient(ReduceMaxGradient):
    """dX = dY where X equals Y, else 0."""


@register_operator("ReduceL1Gradient")
class ReduceL1Gradient(ReduceGradient):
    """dX = dY * sign(X)."""

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return dy * x.sign()


@register_operator("ReduceL2Gradient")
class ReduceL2Gradient(ReduceGradient):
    """dX = dY * X / Y; where Y is 0 it is dY, as in Caffe2."""

    def spread(self, dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        found: Tensor = torch.where(y > 0, dy * x / y, dy)
        return found


@register_operator("SumElementsGradient")
class SumElementsGradient(FloatOperator):
    """(X, dY: ()) -> dX = dY, divided by the number of elements with `average`."""

    def RunOnDevice(self) -> None:
        x, dy = self.x(0), self.x(1, FLOATS)
        self.enforce(dy.numel() == 1, "the gradient has one element", dy)
        count = max(x.numel(), 1) if self.GetSingleArgument("average", False) else 1
        self.out(0, x.shape).copy_(dy.view(()) / count)


class ExtremesGradient(FloatOperator):
    """(X: (n, rows, columns), Y, dY) -> dX: dY where X equals Y, else 0."""

    along = 2

    def RunOnDevice(self) -> None:
        x, y, dy = self.x(0), self.x(1), self.x(2)
        self.enforce(x.dim() == 3, "X has three dimensions", x)
        chosen = x == y.unsqueeze(self.along)
        self.put(0, dy.unsqueeze(self.along) * chosen)


@register_operator("RowwiseMaxGradient")
class RowwiseMaxGradient(ExtremesGradient):
    """ExtremesGradient of the maxima of rows."""


@register_operator("ColwiseMaxGradient")
class ColwiseMaxGradient(ExtremesGradient):
    """ExtremesGradient of the maxima of columns."""

    along = 1
