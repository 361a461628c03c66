# SPDX-License-Identifier: Apache-2.0
"""Dropout and its gradient."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import BOOL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

__all__ = ["Dropout"]


class DropoutOperator(FloatOperator):
    """The base class of Dropout and its gradient."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ratio = self.GetSingleArgument("ratio", 0.5)
        if self._definition.type == "Dropout":
            self.enforce(self.HasArgument("is_test"), "the argument is_test is set")
        self.is_test = bool(self.GetSingleArgument("is_test", 0))
        self.enforce(0 <= self.ratio < 1, "ratio is in [0, 1)", self.ratio)

    def copy_input(self, x: Tensor) -> None:
        """Set output 0 to input 0, `x`, unless it is in place."""
        if not self.IsInputOutputAlias(0, 0):
            self.out(0, x.shape).copy_(x)


@register_operator("Dropout")
class Dropout(DropoutOperator):
    """Y = X in test; in training X / (1 - ratio) or, with probability `ratio`, 0.

    X -> Y, and in training a bool mask, True where X was kept, drawn by torch's default generator.
    Arguments: `is_test` (required), `ratio` (0.5).
    Follows DropoutOp, caffe2/operators/dropout_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        if self.is_test:
            self.copy_input(x)
            return
        self.enforce(self.OutputSize() == 2, "in training there is an output for the mask")
        mask = self.out(1, x.shape, c10.bool)
        mask.bernoulli_(1 - self.ratio)
        torch.mul(x, mask, out=self.out(0, x.shape)).div_(1 - self.ratio)


@register_operator("DropoutGrad")
class DropoutGrad(DropoutOperator):
    """dX = dY in test; in training (dY, mask) -> dY / (1 - ratio) where it was kept, else 0."""

    def RunOnDevice(self) -> None:
        dy = self.x(0)
        if self.is_test:
            self.copy_input(dy)
            return
        self.enforce(self.InputSize() == 2, "in training the mask is given")
        mask = self.x(1, BOOL)
        self.enforce(mask.numel() == dy.numel(), "the mask has the shape of dY", mask, dy)
        torch.mul(dy, mask.view(dy.shape), out=self.out(0, dy.shape)).div_(1 - self.ratio)
