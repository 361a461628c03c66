# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions of two inputs.

Sizes broadcast as in NumPy, or as `legacy_broadcast` describes where the argument `broadcast` is
set. Follows caffe2/operators/elementwise_ops.h and elementwise_ops_utils.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import (
    BOOL,
    FLOAT,
    NUMBERS,
    NUMBERS_AND_BOOL,
    enforce,
)
from bridge.caffe2.operators.base.variants import register_variant
from bridge.caffe2.operators.elementwise.legacy_broadcast import LegacyBroadcast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__: list[str] = []


class _Binary(LegacyBroadcast):
    """A torch function of the elements of inputs 0 and 1, which have the same type."""

    function: str
    types: tuple[TypeMeta, ...]
    result: TypeMeta | None = None

    def RunOnDevice(self) -> None:
        """Compute into the output's own buffer, which may be that of an input."""
        dtype = self.Input(0).dtype()
        a = self.x(0, self.types)
        b = self.x(1, (dtype,))
        sizes: Sequence[int] = a.shape
        if self._legacy:
            enforce(
                not self.IsInputOutputAlias(1, 0),
                "With broadcast=1 the output cannot be in place of input 1.",
            )
            b = self.aligned(a, b)
        elif sizes != b.shape:
            try:
                sizes = torch.broadcast_shapes(sizes, b.shape)
            except RuntimeError as cause:
                raise EnforceNotMet(
                    f"Sizes {list(a.shape)} and {list(b.shape)} do not broadcast together."
                ) from cause
            for i in self._in_place.values():
                enforce(
                    sizes == (b if i else a).shape,
                    f"In place of input {i}, the result must have its sizes, not {list(sizes)}.",
                )
        self.compute(a, b, self.out(0, sizes, self.result or dtype))

    def compute(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Write the result to `out`."""
        getattr(torch, self.function)(a, b, out=out)


_DISCRETE = (c10.int32, c10.int64, c10.bool)


# Caffe2's operator: torch's function, the supported types, the type of its result if another.
_FUNCTIONS: dict[str, tuple[str, tuple[TypeMeta, ...], TypeMeta | None]] = {
    "Add": ("add", NUMBERS, None),
    "Sub": ("sub", NUMBERS, None),
    "Mul": ("mul", NUMBERS, None),
    "And": ("logical_and", BOOL, None),
    "Or": ("logical_or", BOOL, None),
    "Xor": ("logical_xor", BOOL, None),
    "BitwiseAnd": ("bitwise_and", _DISCRETE, None),
    "BitwiseOr": ("bitwise_or", _DISCRETE, None),
    "BitwiseXor": ("bitwise_xor", _DISCRETE, None),
    "EQ": ("eq", NUMBERS_AND_BOOL, c10.bool),
    "NE": ("ne", NUMBERS_AND_BOOL, c10.bool),
    "LT": ("lt", NUMBERS_AND_BOOL, c10.bool),
    "LE": ("le", NUMBERS_AND_BOOL, c10.bool),
    "GT": ("gt", NUMBERS_AND_BOOL, c10.bool),
    "GE": ("ge", NUMBERS_AND_BOOL, c10.bool),
}


for _name, (_function, _types, _result) in _FUNCTIONS.items():
    register_variant(
        _name,
        _Binary,
        f"torch.{_function} of each pair of elements.",
        function=_function,
        types=_types,
        result=_result,
    )


@register_operator("Div")
class Div(_Binary):
    """A / B; the quotient of integers is rounded towards zero.

    Raises EnforceNotMet: an integer is divided by 0.
    """

    types = NUMBERS

    def compute(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Write the result to `out`."""
        if a.is_floating_point():
            torch.div(a, b, out=out)
            return
        enforce(bool((b != 0).all()), "An integer is divided by zero.")
        torch.div(a, b, rounding_mode="trunc", out=out)


@register_operator("Pow")
class Pow(LegacyBroadcast):
    """A ** `exponent`, or A ** B, where B broadcasts only with `broadcast`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if self.InputSize() == 1:
            enforce(self.HasArgument("exponent"), "Pow needs the argument exponent or an input 1.")
        elif not self._legacy:
            enforce(
                self._axis == -1 and not self.GetSingleArgument("axis_str", ""),
                "The arguments axis and axis_str need broadcast=1.",
            )

    def RunOnDevice(self) -> None:
        a = self.x(0, FLOAT)
        b: Any
        if self.InputSize() == 1:
            b = self.GetSingleArgument("exponent", 0.0)
        else:
            b = self.x(1, FLOAT)
            if self._legacy:
                enforce(
                    not self.IsInputOutputAlias(1, 0),
                    "With broadcast=1 the output cannot be in place of input 1.",
                )
                b = self.aligned(a, b)
            elif a.shape != b.shape:
                raise EnforceNotMet(
                    f"Sizes {list(a.shape)} and {list(b.shape)} differ; set broadcast=1.",
                    condition="A.sizes() == B.sizes()",
                )
        torch.pow(a, b, out=self.out(0, a.shape, c10.float32))
