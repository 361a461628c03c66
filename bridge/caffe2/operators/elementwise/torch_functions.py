# SPDX-License-Identifier: Apache-2.0
"""Unary functions that torch has under one name."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import BOOL, FLOATS, NUMBERS


def _declare(name: str, function: str, gradient: str, **declaration: Any) -> None:
    """Declare the torch function `function` of one tensor as the operator `name`."""

    def compute(x: Tensor, *, out: Out = None) -> Tensor:
        return getattr(torch, function)(x, out=out)

    compute.__doc__ = f"torch.{function} of each element."
    compute.__name__ = compute.__qualname__ = function
    operator(name, gradient=gradient, **declaration)(compute)


for _name in ("Abs", "Acos", "Asin", "Atan", "Cos", "Erf", "Sin", "Tan"):
    _declare(_name, _name.lower(), f"{_name}Gradient i0 g0 > 0")
for _name in ("Cosh", "Sinh"):
    _declare(_name, _name.lower(), f"{_name}Gradient g0 i0 > 0")

for _name, _function, _gradient in (
    ("Ceil", "ceil", "unimplemented"),
    ("Exp", "exp", "Mul o0 g0 > 0"),
    ("Floor", "floor", "unimplemented"),
    ("Log", "log", "Div g0 i0! > 0"),
    ("Reciprocal", "reciprocal", "ReciprocalGradient o0 g0 > 0"),
    ("Rsqrt", "rsqrt", "RsqrtGradient g0 o0 > 0"),
    ("Sqr", "square", "Scale{scale=2.0} g0 > g0; Mul g0 i0! > 0"),
):
    _declare(_name, _function, _gradient, inplace="0>0")

_declare("Negative", "neg", "Negative g0 > 0", inplace="0>0", types=NUMBERS)
_declare("Not", "logical_not", "undefined", types=BOOL)
_declare("Sign", "sign", "undefined", types=NUMBERS)
_HALVED = "Scale{scale=0.5} g0 > 0; Div d0 o0 > 0"
_declare("Sqrt", "sqrt", _HALVED, inplace="0>0", types=FLOATS)
