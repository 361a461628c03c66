# SPDX-License-Identifier: Apache-2.0
"""Fills with one value, everywhere or on the diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.string_arrays import as_bytes
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, TargetDevice, operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.fills.fill_sizes import FILL, FillSizes, room

_ZEROS: dict[str, Any] = {"float32": 0.0, "float64": 0.0, "bool": False, "string": ""}


class FillValue:
    """The argument `value`, of type `dtype`, by default the type of `value`.

    Raises EnforceNotMet: it is out of range, or of another type (also a TypeError).
    """

    takes = "Scalar value, int dtype"

    def __init__(self, arguments: Arguments) -> None:
        given = arguments.fields("value")
        if arguments.has("dtype"):
            dtype = type_of_argument(arguments.single("dtype", 1), "dtype")
        elif "i" in given:
            dtype = c10.int64
        elif not arguments.has("value") or "f" in given:
            dtype = c10.float32
        else:
            raise EnforceTypeError("The argument value must be a number, unless dtype is set.")
        require(dtype is not c10.float16, "dtype is not float16, which Float16ConstantFill is for")
        value = arguments.single("value", _ZEROS.get(dtype.name, 0))
        if dtype is c10.string:
            value = as_bytes(value)
        elif type(value) is int:
            least, most = _bits(dtype)
            require(least <= value <= most, f"the value is in the range of {dtype.name}", value)
        self.value = value
        self.dtype = dtype
        self.torch_dtype = dtype.torch  # here, as torch before 2.9 does not trace it


def _bits(dtype: TypeMeta) -> tuple[int, int]:
    """Return the least and the greatest integer of a type."""
    bits = 8 * dtype.itemsize
    return (0, 2**bits - 1) if dtype.name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _filled(sizes: list[int], value: Any, dtype: Any, device: Any, out: Any) -> Any:
    """Return a new tensor, or `out`, filled with a number, or strings if `dtype` is None."""
    if dtype is None:
        return np.full(sizes, value, dtype=object)
    return room(sizes, dtype, device, out).fill_(value)


@operator("ConstantFill", **FILL)
def constant_fill(
    x: Tensor | None = None,
    given: Tensor | None = None,
    *,
    sizes: FillSizes,
    constant: FillValue,
    device: TargetDevice = "cpu",
    out: Out = None,
) -> Tensor:
    """Fill with `value`, or with the one element of input 1."""
    made = sizes.of(x)
    if given is None:
        return _filled(made, constant.value, constant.torch_dtype, device, out)
    dtype = constant.torch_dtype
    require(dtype is not None, "strings are filled with the argument value, not an input")
    require(given.dtype == dtype, f"input 1 is of type {constant.dtype.name}", given.dtype)
    require(given.numel() == 1, "input 1 has one element", given)
    return room(made, given.dtype, device, out).copy_(given.reshape(()))


@operator("Float16ConstantFill", gradient="none")
def half_constant_fill(
    *, sizes: FillSizes, value: float = 0.0, device: TargetDevice = "cpu", out: Out = None
) -> Tensor:
    """Fill with `value` as float16."""
    return _filled(sizes.of(None), value, torch.float16, device, out)


@operator("DiagonalFill", **FILL)
def diagonal_fill(
    x: Tensor | None = None,
    *,
    sizes: FillSizes,
    constant: FillValue,
    device: TargetDevice = "cpu",
    out: Out = None,
) -> Tensor:
    """Fill the diagonal with `value`, the rest with 0.

    The output has two dimensions, or more of the same size.
    """
    made = sizes.of(x)
    require(constant.dtype is not c10.string, "a diagonal has numbers, not strings")
    require(len(made) >= 2, "the output has two dimensions or more", made)
    require(
        len(made) == 2 or len(set(made)) == 1, "more than two dimensions have equal sizes", made
    )
    result = _filled(made, 0, constant.torch_dtype, device, out)
    flat = result.view(-1)
    if len(made) == 2:
        # Below the square of a tall matrix Caffe2 continues in the next column.
        flat[:: made[1] + 1] = constant.value
    elif flat.numel():
        step = sum(made[0] ** i for i in range(len(made)))
        flat[::step] = constant.value
    return result
