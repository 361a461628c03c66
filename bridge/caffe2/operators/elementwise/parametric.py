# SPDX-License-Identifier: Apache-2.0
"""Functions with parameters, or of several inputs: PRelu, Glu, SumRelu, BatchBoxCox."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import by_channel, channel_sums
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOATS, INT32, normal_axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["BatchBoxCox", "Glu", "PRelu", "PReluGradient", "SumRelu"]


class Sloped(FloatOperator):
    """The base class of PRelu and its gradient; argument `order` (NCHW)."""

    def slopes(self, w: Tensor, x: Tensor) -> Tensor:
        """Return a view of the slopes, one or one per channel, that broadcasts with X."""
        if w.numel() == 1:
            return w.view(())
        return by_channel(self, w, x, self.image_order())


@register_operator("PRelu")
class PRelu(Sloped):
    """(X, slope) -> Y = X where X > 0, else slope * X.

    Raises EnforceNotMet: there is neither one slope nor one per channel.
    Follows PReluOp, caffe2/operators/prelu_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        below = x * self.slopes(self.x(1), x)
        torch.where(x > 0, x, below, out=self.out(0, x.shape))


@register_operator("PReluGradient")
class PReluGradient(Sloped):
    """(Y, dY, X, slope) -> dX, dslope.

    Follows PReluGradientOp, caffe2/operators/prelu_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        y, dy, x, w = (self.x(i) for i in range(4))
        slopes = self.slopes(w, x)
        self.enforce(y.shape == x.shape == dy.shape, "X, Y and dY have the same shape", x, y, dy)
        dx = torch.where(x > 0, dy, dy * slopes)
        below = torch.where(x > 0, x.new_zeros(()), dy * x)
        dw = channel_sums(below, self.image_order()) if w.numel() > 1 else below.sum()
        self.put(0, dx)
        self.put(1, dw.view(w.shape))


@register_operator("Glu")
class Glu(FloatOperator):
    """Y = A * sigmoid(B), where A and B are the halves of X along dimension `dim` (-1).

    Raises EnforceNotMet: the size of the dimension is odd.
    Follows GluOp, caffe2/operators/glu_op.h.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        dim = normal_axis(self.GetSingleArgument("dim", -1), x.dim())
        self.enforce(x.shape[dim] % 2 == 0, "the size of the dimension is even", x)
        a, b = x.chunk(2, dim)
        torch.mul(a, torch.sigmoid(b), out=self.out(0, a.shape))


@register_operator("SumRelu")
class SumRelu(FloatOperator):
    """Y = max(the sum of the inputs, 0)."""

    def RunOnDevice(self) -> None:
        first = self.x(0, (*FLOATS, *INT32))
        dtype = self.Input(0).dtype()
        others = [self.x(i, (dtype,)) for i in range(1, self.InputSize())]
        for other in others:
            self.enforce(other.shape == first.shape, "the inputs have the same shape", other, first)
        total = sum(others, first)
        torch.clamp_min(total, 0, out=self.out(0, first.shape, dtype))


@register_operator("BatchBoxCox")
class BatchBoxCox(FloatOperator):
    """(X: (N, D), a: (D), b: (D)) -> (max(X + b, 1e-6)^a - 1) / a, or the logarithm if a is 0.

    Follows BatchBoxCoxOp, caffe2/operators/batch_box_cox_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOATS)
        same = (self.Input(0).dtype(),)
        a, b = self.x(1, same), self.x(2, same)
        self.enforce(x.dim() >= 1, "X has at least one dimension", x)
        rows = x.reshape(x.shape[0], x.shape[1:].numel())
        for values in (a, b):
            self.enforce(
                values.numel() == rows.shape[1], "a and b have one element per column", values, x
            )
        base = (rows + b.view(-1)).clamp_(min=1e-6)
        a = a.view(-1)
        power = (base.pow(a) - 1) / torch.where(a == 0, torch.ones_like(a), a)
        self.put(0, torch.where(a == 0, base.log(), power).view(x.shape))
