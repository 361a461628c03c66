# SPDX-License-Identifier: Apache-2.0
"""Operators that check values, and operators that fail."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOAT, FLOATS, INTS, TorchOperator

__all__: list[str] = []


@register_operator("NanCheck")
class NanCheck(TorchOperator):
    """A copy of input 0. Raises EnforceNotMet: it has NaN or infinities."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        if not bool(torch.isfinite(x).all()):
            raise EnforceNotMet(f"Blob {self._definition.inputs[0]!r} has NaN or infinities.")
        if not self._in_place:
            self.Output(0).CopyFrom(self.Input(0))


@register_operator("EnforceFinite")
class EnforceFinite(TorchOperator):
    """No output. Raises EnforceNotMet: input 0 has NaN or infinities."""

    def RunOnDevice(self) -> None:
        finite = torch.isfinite(self.x(0, FLOATS)).reshape(-1)
        if not bool(finite.all()):
            raise EnforceNotMet(f"Element {int((~finite).nonzero()[0])} is not finite.")


@register_operator("Assert")
class Assert(TorchOperator):
    """No output. Raises EnforceNotMet with `error_msg`: an element of input 0 is 0."""

    def RunOnDevice(self) -> None:
        zero = (self.x(0, (*INTS, c10.bool)) == 0).reshape(-1)
        if bool(zero.any()):
            raise EnforceNotMet(
                f"Element {int(zero.nonzero()[0])} is 0. "
                f"{self.GetSingleArgument('error_msg', '')}".rstrip(),
                condition="(bool)cmp_data[i]",
            )


@register_operator("Fail")
class Fail(TorchOperator):
    """An operator that fails."""

    def RunOnDevice(self) -> bool:
        return False


@register_operator("ThrowException")
class ThrowException(TorchOperator):
    """An operator that raises an error with the argument `message`."""

    def RunOnDevice(self) -> None:
        raise EnforceNotMet(
            str(self.GetSingleArgument("message", "Exception from ThrowExceptionOp"))
        )
