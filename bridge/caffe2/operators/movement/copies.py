# SPDX-License-Identifier: Apache-2.0
"""Operators that copy a tensor or alias its memory."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.torch_operator import TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("Copy")
@register_operator("CopyFromCPUInput")
@register_operator("CopyOnDeviceLike")
@register_operator("EnsureCPUOutput")
class Copy(AnyTypeOperator):
    """A copy of input 0, of any type."""

    def move(self) -> None:
        self.store_reshaped(self.Input(0).sizes())


@register_operator("StopGradient")
class StopGradient(Copy):
    """A copy of input 0, which has no gradient."""


@register_operator("ZeroGradient")
class ZeroGradient(TorchOperator):
    """No output; the gradient of the input is zero instead of undefined."""

    def RunOnDevice(self) -> None:
        """Do nothing."""


@register_operator("NegateGradient")
class NegateGradient(Copy):
    """A copy of input 0, whose gradient is negated."""


@register_operator("EnsureDense")
class EnsureDense(Copy):
    """A copy of input 0, which must have at least one dimension."""

    def move(self) -> None:
        enforce(self.Input(0).dim() > 0, "Input 0 must have at least one dimension.")
        super().move()


@register_operator("Alias")
class Alias(TorchOperator):
    """A tensor with its own sizes that shares the memory of input 0."""

    def RunOnDevice(self) -> None:
        self.OutputTensorAlias(0, self.Input(0))


@register_operator("AliasWithName")
class AliasWithName(Alias):
    """Alias; the argument `name` is metadata."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        enforce(self.HasArgument("name"), "The argument name is missing.")
