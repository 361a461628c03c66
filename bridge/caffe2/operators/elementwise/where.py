# SPDX-License-Identifier: Apache-2.0
"""Where and Conditional: elements or rows selected by conditions."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import along_rows
from bridge.caffe2.operators.base.torch_operator import BOOL, NUMBERS_AND_BOOL, enforce

__all__: list[str] = []


@register_operator("Where")
class Where(AnyTypeOperator):
    """Input 1 where input 0 is true, else input 2; by rows with `broadcast_on_rows`."""

    def move(self) -> None:
        choice = self.x(0, BOOL)
        dtype = self.Input(1).dtype()
        enforce(
            dtype in (*NUMBERS_AND_BOOL, c10.string) and self.Input(2).dtype() is dtype,
            "Inputs 1 and 2 must have the same type.",
        )
        left, right = self.load(1), self.load(2)
        enforce(left.shape == right.shape, "Inputs 1 and 2 must have the same sizes.")
        if self.GetSingleArgument("broadcast_on_rows", False):
            enforce(
                choice.dim() == 1 and left.dim() > 0 and len(choice) == left.size(0),
                "There must be one bool per row.",
            )
            choice = along_rows(choice, left)
        else:
            enforce(choice.shape == left.shape, "Inputs 0 and 1 must have the same sizes.")
        self.store(0, torch.where(choice, left, right), dtype)


@register_operator("Conditional")
class Conditional(AnyTypeOperator):
    """The rows of input 1 where input 0 is true, else those of input 2."""

    def move(self) -> None:
        choice = self.x(0, BOOL)
        dtype = self.Input(1).dtype()
        enforce(self.Input(2).dtype() is dtype, "Inputs 1 and 2 must have the same type.")
        left, right = self.load(1), self.load(2)
        enforce(left.shape == right.shape, "Inputs 1 and 2 must have the same sizes.")
        enforce(
            choice.dim() == 1 and left.dim() >= 1 and len(choice) == left.size(0),
            "There must be one bool per row.",
        )
        choice = along_rows(choice, left)
        self.store(0, torch.where(choice, left, right), dtype)
