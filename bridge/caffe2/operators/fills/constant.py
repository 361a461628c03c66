# SPDX-License-Identifier: Apache-2.0
"""Fills with one value, everywhere or on the diagonal."""

from __future__ import annotations

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.strings import as_bytes
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.fill_operator import FillOperator
from bridge.caffe2.operators.base.torch_operator import enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []

_ZEROS: dict[TypeMeta, Any] = {c10.float32: 0.0, c10.float64: 0.0, c10.bool: False, c10.string: ""}


def _bits(dtype: TypeMeta) -> tuple[int, int]:
    """Return the least and the greatest integer of a type."""
    bits = 8 * dtype.itemsize
    return (0, 2**bits - 1) if dtype.name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


class _OneValue(FillOperator):
    """A fill with the argument `value`, of type `dtype`, by default the type of `value`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if self.HasArgument("dtype"):
            self._dtype = type_of_argument(self.GetSingleArgument("dtype", 1), "dtype")
        elif self.HasSingleArgumentOfType("value", int):
            self._dtype = c10.int64
        elif not self.HasArgument("value") or self.HasSingleArgumentOfType("value", float):
            self._dtype = c10.float32
        else:
            raise EnforceTypeError("The argument value must be a number, unless dtype is set.")
        enforce(
            self._dtype is not c10.float16,
            f"{self._definition.type} does not support float16; use Float16ConstantFill.",
        )
        self._value = self.GetSingleArgument("value", _ZEROS.get(self._dtype, 0))
        if self._dtype is c10.string:
            self._value = as_bytes(self._value)
        elif type(self._value) is int:
            least, most = _bits(self._dtype)
            enforce(
                least <= self._value <= most,
                f"The value {self._value} is out of range for {self._dtype.name}.",
            )


@register_operator("ConstantFill")
class ConstantFill(_OneValue):
    """Fill with `value`, or with the one element of input 1."""

    def RunOnDevice(self) -> None:
        value = self._value
        if self.InputSize() == 2:
            enforce(
                self._dtype is not c10.string,
                "Strings cannot be filled from input 1; use the argument value.",
            )
            given = self.x(1, (self._dtype,))
            enforce(given.numel() == 1, f"Input 1 must have one element, not {given.numel()}.")
            value = given.item()
        self.fill(value, self._dtype)


@register_operator("Float16ConstantFill")
class Float16ConstantFill(FillOperator):
    """Fill with `value` as float16."""

    def RunOnDevice(self) -> None:
        self.fill(self.GetSingleArgument("value", 0.0), c10.float16)


@register_operator("DiagonalFill")
class DiagonalFill(_OneValue):
    """Fill the diagonal with `value`, the rest with 0.

    The output has two dimensions, or more of the same size.
    """

    def RunOnDevice(self) -> None:
        sizes = self.sizes()
        enforce(self._dtype is not c10.string, "A diagonal of strings is not supported.")
        enforce(len(sizes) >= 2, f"The output must have two dimensions or more, not {len(sizes)}.")
        enforce(
            len(sizes) == 2 or len(set(sizes)) == 1,
            f"The sizes of more than two dimensions must be equal, not {sizes}.",
        )
        flat = self.out(0, sizes, self._dtype).zero_().view(-1)
        if len(sizes) == 2:
            # Below the square of a tall matrix Caffe2 continues in the next column.
            flat[:: sizes[1] + 1] = self._value
        elif flat.numel():
            step = sum(sizes[0] ** i for i in range(len(sizes)))
            flat[::step] = self._value
