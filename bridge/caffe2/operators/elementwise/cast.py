# SPDX-License-Identifier: Apache-2.0
"""Conversions of the element type."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.torch_operator import TorchOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []

_CAST = (
    c10.float32,
    c10.int32,
    c10.bool,
    c10.uint8,
    c10.int8,
    c10.uint16,
    c10.int16,
    c10.int64,
    c10.float64,
)


@register_operator("Cast")
class Cast(TorchOperator):
    """Input 0 converted to the type `to`, a number or a name; rounded towards zero, as in C.

    Strings have six decimals for floating point numbers, none for integers. As in CastOp,
    caffe2/operators/cast_op.cc, strings cannot be converted, nor can float16 on the CPU.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        to = self.GetSingleArgument("to")
        self._to = c10.float32 if to is None else type_of_argument(to, "to")
        if self._to is c10.float16:
            raise EnforceTypeError("Cast does not support float16 on the CPU; use FloatToHalf.")

    def RunOnDevice(self) -> None:
        x = self.x(0, _CAST)
        if self._to is c10.string:
            form = "%f" if x.is_floating_point() else "%d"
            self.put_strings(0, x.shape, [(form % one).encode() for one in x.view(-1).tolist()])
        else:
            self.out(0, x.shape, self._to).copy_(x)


@register_operator("FloatToHalf")
class FloatToHalf(TorchOperator):
    """Input 0, float32, converted to float16."""

    def RunOnDevice(self) -> None:
        x = self.x(0, (c10.float32,))
        self.out(0, x.shape, c10.float16).copy_(x)


@register_operator("HalfToFloat")
class HalfToFloat(TorchOperator):
    """Input 0, float16, converted to float32."""

    def RunOnDevice(self) -> None:
        x = self.x(0, (c10.float16,))
        self.out(0, x.shape, c10.float32).copy_(x)
