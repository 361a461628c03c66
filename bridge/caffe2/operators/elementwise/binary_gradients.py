# SPDX-License-Identifier: Apache-2.0
"""Gradients of Add, Sub, Mul and Div, and of operators of several inputs."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOATS, NUMBERS
from bridge.caffe2.operators.elementwise.legacy_broadcast import LegacyBroadcast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

__all__ = ["AddGradient", "DivGradient", "MaxGradient", "MeanGradient", "MulGradient"]


class BinaryGradient(LegacyBroadcast):
    """(dC, A, B, optionally C) -> dA, dB, each summed over the broadcast dimensions.

    For the arguments see LegacyBroadcast.
    Follows BinaryElementwiseWithArgsGradientOp, caffe2/operators/elementwise_ops.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        dc, a, b = self.given()
        wide = self.aligned(a, b) if self._legacy else b
        try:
            fits = torch.broadcast_shapes(a.shape, wide.shape) == dc.shape
        except RuntimeError:
            fits = False
        self.enforce(fits, "A and B broadcast to the shape of dC", a, b, dc)
        da, db = self.spread(dc, a, wide)
        self.put(0, folded(da, a.shape))
        self.put(1, folded(db, wide.shape).view(b.shape))

    def given(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return dC, A, B."""
        return self.x(0, NUMBERS), self.x(1, NUMBERS), self.x(2, NUMBERS)

    def spread(self, dc: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """Return dA and dB, each in the shape of dC."""
        raise NotImplementedError


def folded(gradient: Tensor, shape: Sequence[int]) -> Tensor:
    """Return a gradient summed to `shape`, the shape before broadcasting; always a new tensor."""
    found: Tensor = gradient.sum_to_size(shape).to(gradient.dtype)
    return found.clone() if found.data_ptr() == gradient.data_ptr() else found


@register_operator("AddGradient")
class AddGradient(BinaryGradient):
    """dA = dC, dB = dC."""

    def spread(self, dc: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return dc, dc


@register_operator("SubGradient")
class SubGradient(BinaryGradient):
    """dA = dC, dB = -dC."""

    def spread(self, dc: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return dc, -dc


@register_operator("MulGradient")
class MulGradient(BinaryGradient):
    """dA = dC * B, dB = dC * A."""

    def spread(self, dc: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return dc * b, dc * a


@register_operator("DivGradient")
class DivGradient(BinaryGradient):
    """dA = dC / B, dB = -dC * C / B. Inputs: (dC, A, B, C), or (B, C, dC) as in older nets."""

    def given(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return dC, A, B; C instead of A, of which only the sizes are used."""
        if self.InputSize() == 4:
            return super().given()
        return self.x(2, NUMBERS), self.x(1, NUMBERS), self.x(0, NUMBERS)

    def spread(self, dc: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """Return dA and dB, each in the shape of dC."""
        c = self.x(3, NUMBERS) if self.InputSize() == 4 else a
        if dc.is_floating_point():
            return dc / b, -dc * c / b
        self.enforce(not bool((b == 0).any()), "integers are not divided by 0")
        whole = torch.div(dc, b, rounding_mode="trunc")
        return whole, torch.div(-dc * c, b, rounding_mode="trunc")


class ExtremeGradient(FloatOperator):
    """(Y, dY, X0, X1, ...) -> dX0, dX1, ...: dY where X equals Y, else 0."""

    def RunOnDevice(self) -> None:
        y, dy = self.x(0), self.x(1)
        self.enforce(self.OutputSize() == self.InputSize() - 2, "there is one output per X")
        for i in range(self.OutputSize()):
            x = self.x(i + 2)
            self.enforce(x.shape == y.shape, "the inputs have the same shape", x, y)
            self.put(i, torch.where(x == y, dy, dy.new_zeros(())))


@register_operator("MaxGradient")
class MaxGradient(ExtremeGradient):
    """ExtremeGradient of Max."""


@register_operator("MinGradient")
class MinGradient(ExtremeGradient):
    """ExtremeGradient of Min."""


@register_operator("MeanGradient")
class MeanGradient(FloatOperator):
    """dY -> dX0, dX1, ...: dY / n for n outputs."""

    def RunOnDevice(self) -> None:
        n = self.OutputSize()
        share = self.x(0, FLOATS) / n
        for i in range(n):
            self.put(i, share.clone() if i < n - 1 else share)


@register_operator("WeightedSumGradient")
class WeightedSumGradient(FloatOperator):
    """(dY, X0, w0, X1, w1, ...) -> dX0, dX1, ..., with `grad_on_w` also dw0, dw1, ..."""

    def RunOnDevice(self) -> None:
        dy, n = self.x(0), (self.InputSize() - 1) // 2
        on_w = bool(self.GetSingleArgument("grad_on_w", False))
        self.enforce(self.OutputSize() == n * (1 + on_w), "there is one gradient per X", n)
        for i in range(n):
            x, w = self.x(1 + 2 * i), self.x(2 + 2 * i)
            self.enforce(w.numel() == 1, "a weight has one element", w)
            self.put(i, dy * w.view(()))
            if on_w:
                self.put(n + i, (dy * x).sum().view(1))
