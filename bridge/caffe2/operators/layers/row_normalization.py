# SPDX-License-Identifier: Apache-2.0
"""Softmax and normalization of rows, and their gradients."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.layers.matrix_products import as_matrix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Softmax", "SoftmaxGradient"]


@register_operator("Softmax")
class Softmax(FloatOperator):
    """Y = exp(X) / the sum of exp(X) over what is from dimension `axis` (1) on.

    Follows SoftmaxOp, caffe2/operators/softmax_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        axis = self.axis(x, "axis", 1)
        y = self.out(0, x.shape)
        torch.softmax(as_matrix(x, axis), 1, out=as_matrix(y, axis))


@register_operator("SoftmaxGradient")
class SoftmaxGradient(FloatOperator):
    """(Y, dY) -> dX = Y * (dY - sum(Y * dY) of the row); argument `axis` (1)."""

    def RunOnDevice(self) -> None:
        y, dy = self.x(0), self.x(1)
        self.enforce(y.numel() == dy.numel(), "Y and dY have the same shape", y, dy)
        axis = self.axis(y, "axis", 1)
        rows, drows = as_matrix(y, axis), dy.view(as_matrix(y, axis).shape)
        inner = (rows * drows).sum(1, keepdim=True)
        torch.mul(rows, drows - inner, out=as_matrix(self.out(0, y.shape), axis))


class Norm(FloatOperator):
    """Y = X / norm(X) along dimension `axis` (-1)."""

    power = 2

    def RunOnDevice(self) -> None:
        x = self.x(0)
        axis = self.axis(x, "axis", -1)
        norm = torch.linalg.vector_norm(x, self.power, axis, keepdim=True)
        torch.div(x, self.divisor(norm), out=self.out(0, x.shape))

    def divisor(self, norm: Tensor) -> Tensor:
        """Return the divisor, a norm or a replacement for 0."""
        raise NotImplementedError


@register_operator("Normalize")
class Normalize(Norm):
    """Norm with the 2-norm, at least 1e-12."""

    def divisor(self, norm: Tensor) -> Tensor:
        return norm.clamp_(min=1e-12)


@register_operator("NormalizeL1")
class NormalizeL1(Norm):
    """Norm with the sum of the absolute values; zeros stay zeros."""

    power = 1

    def divisor(self, norm: Tensor) -> Tensor:
        return norm.masked_fill_(norm == 0, 1)


@register_operator("NormalizeGradient")
class NormalizeGradient(FloatOperator):
    """(X, dY) -> dX of Normalize; argument `axis` (-1)."""

    def RunOnDevice(self) -> None:
        x, dy = self.x(0), self.x(1)
        axis = self.axis(x, "axis", -1)
        norm = torch.linalg.vector_norm(x, 2, axis, keepdim=True).clamp_(min=1e-12)
        inner = (x * dy).sum(axis, keepdim=True)
        torch.sub(dy / norm, x * (inner / norm**3), out=self.out(0, dy.shape))
