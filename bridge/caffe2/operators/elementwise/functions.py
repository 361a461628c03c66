# SPDX-License-Identifier: Apache-2.0
"""Unary elementwise functions, and their gradients; conversions of the element type.

A gradient dx of the input is computed from that of the output, dy, and the input x or the output y.
Follows the operators in caffe2/operators/, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.data_types import number_of_argument, type_of_argument
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import (
    BOOL,
    FLOATS,
    INTS,
    LARGEST,
    NUMBERS,
    require,
    require_range,
    shaped_like,
)
from bridge.caffe2.operators.base.gradients import clamped, declare_gradient


@operator("Cube", types=NUMBERS, gradient="$Gradient g0 i0 > 0")
def cube(x: Tensor, *, out: Out = None) -> Tensor:
    """The third power of each element."""
    return torch.mul(x * x, x, out=out)


@operator("Cbrt", inplace="0>0", gradient="$Gradient g0 o0 > 0")
def cbrt(x: Tensor, *, out: Out = None) -> Tensor:
    """The real cube root of each element."""
    root = torch.pow(torch.abs(x).double(), 1 / 3).float()
    return torch.copysign(root, x, out=out)


@operator("Mod", inplace="0>0", types=INTS)
def mod(
    x: Tensor, *, divisor: int = 0, sign_follow_divisor: bool = False, out: Out = None
) -> Tensor:
    """The remainder by `divisor`, with the sign of the element, or that of the divisor."""
    require(divisor != 0, "the argument divisor is not 0")
    if sign_follow_divisor:
        return torch.remainder(x, divisor, out=out)
    return torch.fmod(x, divisor, out=out)


@operator("IsNaN", types=FLOATS)
def is_nan(x: Tensor, *, out: Out = None) -> Tensor:
    """1 where an element is NaN, else 0, as uint8."""
    found = torch.isnan(x)
    return found.to(torch.uint8) if out is None else out.copy_(found)


@operator("ReplaceNaN", inplace="0>0", types=FLOATS, gradient="undefined")
def replace_nan(x: Tensor, *, value: float = 0.0, out: Out = None) -> Tensor:
    """X with NaN replaced by `value`."""
    return torch.nan_to_num(x, value, float("inf"), float("-inf"), out=out)


@operator("Scale", inplace="0>0", types=FLOATS, gradient="Scale g0 > 0")
def scale_(x: Tensor, *, scale: float = 1.0, out: Out = None) -> Tensor:
    """Each element times `scale`."""
    return torch.mul(x, scale, out=out)


@operator("HardSigmoid", inplace="0>0", gradient="$Gradient o0 g0 > 0")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5, out: Out = None) -> Tensor:
    """y = alpha * x + beta, clamped to [0, 1]."""
    return clamped(x * alpha + beta, 0, 1, out)


@operator("ReluN", inplace="0>0", gradient="$Gradient o0 g0 > 0")
def relu_n(x: Tensor, *, n: float = 6.0, out: Out = None) -> Tensor:
    """y = min(max(x, 0), n)."""
    require(n > 0, "n is positive", n)
    return clamped(x, 0, n, out)


@operator("Clip", inplace="0>0", gradient="$Gradient o0 g0 > 0")
def clip(x: Tensor, *, min: float = -LARGEST, max: float = LARGEST, out: Out = None) -> Tensor:
    """Each element clamped to [min, max]; the gradient is 0 at the limits."""
    return clamped(x, min, max, out)


@operator(
    "EnsureClipped", inplace="0>0", types={"indices": INTS, "gradient": None}, gradient="undefined"
)
def ensure_clipped(
    x: Tensor,
    indices: Tensor | None = None,
    gradient: Tensor | None = None,
    *,
    min: float = -LARGEST,
    max: float = LARGEST,
) -> Tensor:
    """Clip in place; with indices and a gradient, only rows at the indices."""
    clipped = torch.clamp(x, min, max)
    if indices is None:
        return clipped
    n = x.shape[0]
    require(
        gradient is not None
        and gradient.shape[: indices.dim()] == indices.shape
        and gradient.shape[indices.dim() :].numel() == x.shape[1:].numel(),
        "the gradient has one row per index",
        gradient,
        indices,
    )
    places = indices.reshape(-1).long()
    require_range("the indices", places, n)
    return x.index_copy(0, places, clipped.index_select(0, places))


@operator("ClipTensorByScaling", inplace="0>0", gradient="undefined")
def clip_tensor_by_scaling(
    x: Tensor,
    norm: Tensor,
    additional_threshold: Tensor | None = None,
    *,
    threshold: float = 0.0,
    out: Out = None,
) -> Tensor:
    """X scaled down by threshold / norm, if the norm exceeds the threshold.

    The additional threshold, if there is one, multiplies the threshold.
    """
    require(x.numel() > 0, "X is not empty", x)
    require(norm.numel() == 1, "the norm has one element", norm)
    require(threshold > 0, "the argument threshold is positive", threshold)
    most: Tensor | float = threshold
    if additional_threshold is not None:
        fits = additional_threshold.numel() == 1
        require(fits, "the factor of the threshold has one element", additional_threshold)
        most = additional_threshold.view(()) * threshold
    norm = norm.view(())
    factor = torch.where(norm > most, most / norm, norm.new_ones(()))
    return torch.mul(x, factor, out=out)


@operator("AbsGradient")
def abs_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """dx = dy where x > 0, -dy where x < 0, else 0."""
    dy = shaped_like(dy, x)
    signed = torch.where(x > 0, dy, -dy)
    return torch.where(x == 0, dy.new_zeros(()), signed, out=out)


@operator("ClipGradient", inplace="1>0")
def clip_gradient(
    y: Tensor, dy: Tensor, *, min: float = -LARGEST, max: float = LARGEST, out: Out = None
) -> Tensor:
    """dx = dy where min < y < max, else 0."""
    dy = shaped_like(dy, y)
    return torch.mul(dy, (y > min) & (y < max), out=out)


def _declare(name: str, function: str, gradient: str, **declaration: Any) -> None:
    """Declare the torch function `function` of one tensor as the operator `name`."""

    def compute(x: Tensor, *, out: Out = None) -> Tensor:
        return getattr(torch, function)(x, out=out)

    compute.__doc__ = f"torch.{function} of each element."
    compute.__name__ = compute.__qualname__ = function
    operator(name, gradient=gradient, **declaration)(compute)


declare_gradient("Acos", "-dy / sqrt(1 - x^2)", lambda x: -torch.rsqrt(1 - x * x))
declare_gradient("Asin", "dy / sqrt(1 - x^2)", lambda x: torch.rsqrt(1 - x * x))
declare_gradient("Atan", "dy / (1 + x^2)", lambda x: 1 + x * x, torch.div)
declare_gradient("Cos", "-dy * sin(x)", lambda x: -torch.sin(x))
declare_gradient("Cosh", "dy * sinh(x)", torch.sinh, first="dy")
declare_gradient("Cube", "dy * 3 * x^2", lambda x: 3 * x * x, first="dy", types=NUMBERS)
_ERF_SLOPE = 2 / math.sqrt(math.pi)
declare_gradient("Erf", "dy * 2 / sqrt(pi) * exp(-x^2)", lambda x: torch.exp(-x * x) * _ERF_SLOPE)
declare_gradient("Sin", "dy * cos(x)", torch.cos)
declare_gradient("Sinh", "dy * cosh(x)", torch.cosh, first="dy")
declare_gradient(
    "Cbrt", "dy / (3 * y^2)", lambda y: 3 * y * y, torch.div, first="dy", inplace="0>0"
)
declare_gradient("Reciprocal", "-dy * y^2", lambda y: -y * y, inplace="1>0")
declare_gradient(
    "Rsqrt", "-dy * y^3 / 2", lambda y: torch.pow(y, 3) * -0.5, first="dy", inplace="0>0"
)
declare_gradient("Tan", "dy / cos(x)^2", lambda x: torch.square(torch.cos(x)), torch.div)

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


class Target:
    """The element type that the argument `to` names, by its number or name; float32 by default."""

    takes = "int to"

    def __init__(self, arguments: Arguments) -> None:
        to = arguments.single("to")
        dtype = c10.float32 if to is None else type_of_argument(to, "to")
        if dtype is c10.float16:
            raise EnforceTypeError("Cast does not support float16 on the CPU; use FloatToHalf.")
        self.name = dtype.name
        self.is_string = dtype is c10.string


def _cast_gradient(maker: GradientMaker) -> None:
    maker.enforce(maker.has_argument("from_type"), "needs argument 'from_type', to cast back")
    to = number_of_argument(maker.argument("to", None), "to")
    back = number_of_argument(maker.argument("from_type", None), "from_type")
    arguments = {"to": back, "from_type": to}
    maker.add("Cast", [maker.GO(0)], [maker.GI(0)], arguments, copied=False)


@operator("Cast", types=_CAST, gradient=_cast_gradient)
def cast(x: Tensor, *, target: Target, out: Out = None) -> Any:
    """X converted to the type `to`, a number or a name; rounded towards zero, as in C.

    Strings have six decimals for floating point numbers, none for integers. As in CastOp,
    caffe2/operators/cast_op.cc, strings cannot be converted, nor can float16 on the CPU.
    """
    if target.is_string:
        return _as_text(x)
    if out is not None:
        return out.copy_(x)
    return x.to(getattr(torch, target.name))


def _as_text(x: Tensor) -> Any:
    import numpy as np

    form = "%f" if x.is_floating_point() else "%d"
    texts = np.empty(x.numel(), object)
    texts[:] = [(form % one).encode() for one in x.reshape(-1).tolist()]
    return texts.reshape(tuple(x.shape))


@operator("FloatToHalf", gradient="HalfToFloat g0 > 0")
def float_to_half(x: Tensor, *, out: Out = None) -> Tensor:
    """X, float32, converted to float16."""
    return x.half() if out is None else out.copy_(x)


@operator("HalfToFloat", types=(c10.float16,), gradient="FloatToHalf g0 > 0")
def half_to_float(x: Tensor, *, out: Out = None) -> Tensor:
    """X, float16, converted to float32."""
    return x.float() if out is None else out.copy_(x)
