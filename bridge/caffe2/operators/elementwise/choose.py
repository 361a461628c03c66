# SPDX-License-Identifier: Apache-2.0
"""Values chosen by conditions, checks of values, and ranges."""

from __future__ import annotations

import math

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.mover import Mover
from bridge.caffe2.operators.base.rows import along_rows
from bridge.caffe2.operators.base.torch_operator import (
    BOOL,
    FLOAT,
    FLOATS,
    INT64,
    INTS,
    NUMBERS,
    NUMBERS_AND_BOOL,
    TorchOperator,
    enforce,
)

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("Where")
class Where(Mover):
    """Input 1 where input 0 is true, else input 2; by rows with `broadcast_on_rows`."""

    def move(self) -> None:
        choice = self.x(0, BOOL)
        dtype = self.Input(1).dtype()
        enforce(
            dtype in (*NUMBERS_AND_BOOL, c10.string) and self.Input(2).dtype() is dtype,
            "Inputs 1 and 2 have to be of one type.",
        )
        left, right = self.take(1), self.take(2)
        enforce(left.shape == right.shape, "Inputs 1 and 2 differ in sizes.")
        if self.GetSingleArgument("broadcast_on_rows", False):
            enforce(
                choice.dim() == 1 and left.dim() > 0 and len(choice) == left.size(0),
                "There is a truth value for each row.",
            )
            choice = along_rows(choice, left)
        else:
            enforce(choice.shape == left.shape, "Inputs 0 and 1 differ in sizes.")
        self.give(0, torch.where(choice, left, right), dtype)


@register_operator("Conditional")
class Conditional(Mover):
    """The rows of input 1 where input 0 is true, else those of input 2."""

    def move(self) -> None:
        choice = self.x(0, BOOL)
        dtype = self.Input(1).dtype()
        enforce(self.Input(2).dtype() is dtype, "Inputs 1 and 2 differ in type.")
        left, right = self.take(1), self.take(2)
        enforce(left.shape == right.shape, "Inputs 1 and 2 differ in sizes.")
        enforce(
            choice.dim() == 1 and left.dim() >= 1 and len(choice) == left.size(0),
            "There is a truth value for each row.",
        )
        choice = along_rows(choice, left)
        self.give(0, torch.where(choice, left, right), dtype)


@register_operator("Range")
class Range(TorchOperator):
    """start, start + step, ... below stop. Inputs: stop; start, stop; or start, stop, step."""

    def RunOnDevice(self) -> None:
        dtype = self.Input(0).dtype()
        numbers = []
        for i in range(self.InputSize()):
            x = self.x(i, (dtype,) if i else NUMBERS)
            enforce(x.numel() == 1, f"Input {i} has to be a number.")
            numbers.append(x.item())
        start, stop, step = 0, numbers[0], 1
        if len(numbers) > 1:
            start, stop, step = numbers[0], numbers[1], ([*numbers, 1])[2]
        enforce(step != 0, "Step size cannot be 0.")
        quotient = (stop - start) / step
        n = max(math.ceil(quotient), 0)
        if dtype in INTS:
            n = max(-((start - stop) // step), 0)
            if (stop - start) % step and step < 0:
                # Caffe2 divides towards zero, and adds one for what remains only if it steps up.
                n = max(int(quotient), 0)
        self.put(0, start + step * torch.arange(n, dtype=dtype.torch))


@register_operator("Accumulate")
class Accumulate(TorchOperator):
    """Input 0 plus `gamma` (1) times what the output holds, of its sizes; or else plus 0."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        before = self.Output(0)
        known = before.dtype() is c10.float32 and before.storage_initialized()
        if not known or list(before.sizes()) != list(x.shape):
            self.out(0, x.shape, c10.float32).copy_(x)
            return
        gamma = self.GetSingleArgument("gamma", 1.0)
        self.out(0, x.shape, c10.float32).mul_(gamma).add_(x)


class _Checked(TorchOperator):
    """A copy of input 0, after a check of all inputs."""

    def copy(self) -> None:
        """Give the output input 0."""
        if not self._in_place:
            self.Output(0).CopyFrom(self.Input(0))


@register_operator("NanCheck")
class NanCheck(_Checked):
    """A copy of input 0, if it has neither NaN nor infinities; refused if it has."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        if not bool(torch.isfinite(x).all()):
            raise EnforceNotMet(f"Blob {self._definition.inputs[0]!r} has NaN or infinities.")
        self.copy()


@register_operator("EnforceFinite")
class EnforceFinite(TorchOperator):
    """Nothing, if input 0 has neither NaN nor infinities; refused if it has."""

    def RunOnDevice(self) -> None:
        finite = torch.isfinite(self.x(0, FLOATS)).reshape(-1)
        if not bool(finite.all()):
            raise EnforceNotMet(f"Element {int((~finite).nonzero()[0])} is not finite.")


@register_operator("Assert")
class Assert(TorchOperator):
    """Nothing, if no element of input 0 is 0; refused, with `error_msg`, if one is."""

    def RunOnDevice(self) -> None:
        zero = (self.x(0, (*INTS, c10.bool)) == 0).reshape(-1)
        if bool(zero.any()):
            raise EnforceNotMet(
                f"Element {int(zero.nonzero()[0])} is 0. "
                f"{self.GetSingleArgument('error_msg', '')}".rstrip(),
                "(bool)cmp_data[i]",
            )


@register_operator("Fail")
class Fail(TorchOperator):
    """An operator that fails."""

    def RunOnDevice(self) -> bool:
        return False


@register_operator("ThrowException")
class ThrowException(TorchOperator):
    """An operator that raises `message`."""

    def RunOnDevice(self) -> None:
        raise EnforceNotMet(
            str(self.GetSingleArgument("message", "Exception from ThrowExceptionOp"))
        )


@register_operator("KeySplit")
class KeySplit(TorchOperator):
    """The places of each key from 0 to `categorical_limit`, an output each."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._limit = self.GetSingleArgument("categorical_limit", 0)
        enforce(self._limit > 0, "The argument categorical_limit has to be positive.")

    def RunOnDevice(self) -> None:
        keys = self.x(0, INT64).reshape(-1)
        enforce(self.OutputSize() == self._limit, "There is an output for each key.")
        enforce(bool(((keys >= 0) & (keys < self._limit)).all()), "A key is out of range.")
        for key in range(self._limit):
            self.put(key, (keys == key).nonzero().view(-1).int())
