# SPDX-License-Identifier: Apache-2.0
"""Unary functions that torch has under one name."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import BOOL, FLOATS, NUMBERS


@operator("Abs", gradient="AbsGradient i0 g0 > 0")
def abs_(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.abs of each element."""
    return torch.abs(x, out=out)


@operator("Acos", gradient="AcosGradient i0 g0 > 0")
def acos(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.acos of each element."""
    return torch.acos(x, out=out)


@operator("Asin", gradient="AsinGradient i0 g0 > 0")
def asin(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.asin of each element."""
    return torch.asin(x, out=out)


@operator("Atan", gradient="AtanGradient i0 g0 > 0")
def atan(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.atan of each element."""
    return torch.atan(x, out=out)


@operator("Ceil", inplace="0>0", gradient="unimplemented")
def ceil(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.ceil of each element."""
    return torch.ceil(x, out=out)


@operator("Cos", gradient="CosGradient i0 g0 > 0")
def cos(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.cos of each element."""
    return torch.cos(x, out=out)


@operator("Cosh", gradient="CoshGradient g0 i0 > 0")
def cosh(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.cosh of each element."""
    return torch.cosh(x, out=out)


@operator("Erf", gradient="ErfGradient i0 g0 > 0")
def erf(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.erf of each element."""
    return torch.erf(x, out=out)


@operator("Exp", inplace="0>0", gradient="Mul o0 g0 > 0")
def exp(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.exp of each element."""
    return torch.exp(x, out=out)


@operator("Floor", inplace="0>0", gradient="unimplemented")
def floor(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.floor of each element."""
    return torch.floor(x, out=out)


@operator("Log", inplace="0>0", gradient="Div g0 i0! > 0")
def log(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.log of each element."""
    return torch.log(x, out=out)


@operator("Negative", inplace="0>0", types=NUMBERS, gradient="Negative g0 > 0")
def neg(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.neg of each element."""
    return torch.neg(x, out=out)


@operator("Not", types=BOOL, gradient="undefined")
def logical_not(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.logical_not of each element."""
    return torch.logical_not(x, out=out)


@operator("Reciprocal", inplace="0>0", gradient="ReciprocalGradient o0 g0 > 0")
def reciprocal(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.reciprocal of each element."""
    return torch.reciprocal(x, out=out)


@operator("Rsqrt", inplace="0>0", gradient="RsqrtGradient g0 o0 > 0")
def rsqrt(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.rsqrt of each element."""
    return torch.rsqrt(x, out=out)


@operator("Sign", types=NUMBERS, gradient="undefined")
def sign(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.sign of each element."""
    return torch.sign(x, out=out)


@operator("Sin", gradient="SinGradient i0 g0 > 0")
def sin(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.sin of each element."""
    return torch.sin(x, out=out)


@operator("Sinh", gradient="SinhGradient g0 i0 > 0")
def sinh(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.sinh of each element."""
    return torch.sinh(x, out=out)


@operator("Sqr", inplace="0>0", gradient="Scale{scale=2.0} g0 > g0; Mul g0 i0! > 0")
def square(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.square of each element."""
    return torch.square(x, out=out)


@operator("Sqrt", inplace="0>0", types=FLOATS, gradient="Scale{scale=0.5} g0 > 0; Div d0 o0 > 0")
def sqrt(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.sqrt of each element."""
    return torch.sqrt(x, out=out)


@operator("Tan", gradient="TanGradient i0 g0 > 0")
def tan(x: Tensor, *, out: Out = None) -> Tensor:
    """torch.tan of each element."""
    return torch.tan(x, out=out)
