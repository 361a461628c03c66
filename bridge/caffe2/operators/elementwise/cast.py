# SPDX-License-Identifier: Apache-2.0
"""Conversions of the element type."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.data_types import number_of_argument, type_of_argument
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.gradients.maker import GradientMaker

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
