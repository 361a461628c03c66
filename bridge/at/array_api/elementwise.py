# SPDX-License-Identifier: Apache-2.0
"""Element-wise functions of the array API standard: torch's, with the standard's promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bridge.at.array_api.dtypes import SCALARS
from bridge.at.array_api.running import agreed, named, on_memory

# The function of the standard -> that of torch.
_UNARY = {
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh",
    "atan": "atan", "atanh": "atanh", "bitwise_invert": "bitwise_not", "ceil": "ceil",
    "conj": "conj_physical", "cos": "cos", "cosh": "cosh", "exp": "exp", "expm1": "expm1",
    "floor": "floor", "isfinite": "isfinite", "isinf": "isinf", "isnan": "isnan", "log": "log",
    "log10": "log10", "log1p": "log1p", "log2": "log2", "logical_not": "logical_not",
    "negative": "negative", "positive": "clone", "real": "real", "reciprocal": "reciprocal",
    "signbit": "signbit", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "square",
    "tan": "tan", "tanh": "tanh", "trunc": "trunc",
}  # fmt: skip
_BINARY = {
    "add": "add", "atan2": "atan2", "bitwise_and": "bitwise_and",
    "bitwise_left_shift": "bitwise_left_shift", "bitwise_or": "bitwise_or",
    "bitwise_right_shift": "bitwise_right_shift", "bitwise_xor": "bitwise_xor",
    "copysign": "copysign", "divide": "divide", "equal": "eq", "floor_divide": "floor_divide",
    "greater": "gt", "greater_equal": "ge", "hypot": "hypot", "less": "lt", "less_equal": "le",
    "logaddexp": "logaddexp", "logical_and": "logical_and", "logical_or": "logical_or",
    "logical_xor": "logical_xor", "maximum": "maximum", "minimum": "minimum",
    "multiply": "multiply", "nextafter": "nextafter", "not_equal": "ne", "pow": "pow",
    "remainder": "remainder", "subtract": "subtract",
}  # fmt: skip


def _unary(name: str, theirs: str) -> Callable[..., Any]:
    run = getattr(torch, theirs)

    def function(x: torch.Tensor, /) -> Any:
        return run(x)

    return named(function, name, f"Return ``torch.{theirs}`` of each element.")


def _binary(name: str, theirs: str) -> Callable[..., Any]:
    run = getattr(torch, theirs)

    def function(x1: Any, x2: Any, /) -> Any:
        return run(*agreed(x1, x2))

    return named(function, name, f"Return ``torch.{theirs}`` of each element.")


for _name, _theirs in _UNARY.items():
    globals()[_name] = _unary(_name, _theirs)
for _name, _theirs in _BINARY.items():
    globals()[_name] = _binary(_name, _theirs)


@on_memory
def imag(x: torch.Tensor, /) -> torch.Tensor:
    """Return the imaginary part of each element; zeros of an array of real numbers."""
    return torch.imag(x) if x.is_complex() else torch.zeros_like(x)


@on_memory
def round(x: torch.Tensor, /) -> torch.Tensor:
    """Return each element rounded to the nearest integer, halves to the even one."""
    if x.is_complex():
        return torch.complex(torch.round(x.real), torch.round(x.imag))
    return torch.round(x)


@on_memory
def sign(x: torch.Tensor, /) -> torch.Tensor:
    """Return the sign of each element, ``x / abs(x)`` of a complex one; NaN of NaN."""
    if x.is_complex():
        return torch.where(x == 0, 0, x / torch.abs(x))
    if x.is_floating_point():
        return torch.where(torch.isnan(x), x, torch.sign(x))
    return torch.sign(x)


@on_memory
def clip(x: torch.Tensor, /, min: Any = None, max: Any = None) -> torch.Tensor:
    """Return each element, or the nearest number that is not below `min` and not above `max`.

    The bounds are numbers, or arrays that broadcast with `x`; NaN gives NaN. The type is that of
    `x`.
    """
    found = x
    for bound, nearest in ((min, torch.maximum), (max, torch.minimum)):
        limit = _bound(x, bound)
        if limit is not None:
            found = nearest(found, limit)
    return x.clone() if found is x else found


def _bound(x: torch.Tensor, bound: Any) -> torch.Tensor | None:
    """Return a bound as a tensor of the type of `x`; None if there is none."""
    if bound is None or not isinstance(bound, SCALARS):
        return None if bound is None else bound.to(x.dtype)
    if isinstance(bound, int) and not x.is_floating_point():
        limits = torch.iinfo(x.dtype)
        bound = sorted((limits.min, bound, limits.max))[1]
    return torch.asarray(bound, dtype=x.dtype, device=x.device)


__all__ = sorted([*_UNARY, *_BINARY, "clip", "imag", "round", "sign"])
