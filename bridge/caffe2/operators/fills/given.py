# SPDX-License-Identifier: Apache-2.0
"""Fills with the elements given in the argument `values`."""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.string_arrays import as_bytes
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import TargetDevice, operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.fills.fill_sizes import FILL, FillSizes

# The types that GivenTensorFill supports.
_GIVEN = (c10.float32, c10.float64, c10.bool, c10.int16, c10.int32, c10.int64, c10.string)

_TYPES: dict[str, TypeMeta] = {
    "GivenTensorFill": c10.float32,
    "GivenTensorDoubleFill": c10.float64,
    "GivenTensorBoolFill": c10.bool,
    "GivenTensorIntFill": c10.int32,
    "GivenTensorInt16Fill": c10.int16,
    "GivenTensorInt64Fill": c10.int64,
    "GivenTensorStringFill": c10.string,
}


class GivenValues:
    """The elements in the argument `values`, of the operator's type or `dtype`.

    Raises EnforceNotMet: there are none, or they are of another type (also a TypeError).
    """

    takes = "Scalar[] values, int dtype"

    def __init__(self, arguments: Arguments) -> None:
        require(arguments.has("values"), "the argument values is given")
        dtype = _TYPES[arguments.type]
        if dtype is c10.float32 and arguments.has("dtype"):
            dtype = type_of_argument(arguments.single("dtype"), "dtype")
        require(dtype in _GIVEN, "elements of this type are supported", dtype.name)
        # Many numbers are held in an array.
        held = arguments.fields("values").values()
        values: Any = next((one for one in held if isinstance(one, array)), None)
        if values is None:
            values = arguments.repeated("values")
        kinds: tuple[type, ...] = (int,)
        if dtype is c10.string:
            kinds = (str, bytes)
        elif dtype in (c10.float32, c10.float64):
            kinds = (int, float)
        if values and not isinstance(values[0], kinds):
            raise EnforceTypeError(
                f"The values are {type(values[0]).__name__}, but the tensor's type is {dtype.name}."
            )
        if dtype is c10.string:
            values = np.array([as_bytes(one) for one in values], dtype=object)
        self.values = values
        self.dtype = dtype
        self.torch_dtype = dtype.torch  # here, as torch before 2.9 does not trace it

    def filled(self, sizes: list[int], device: Any) -> Any:
        """Return a new tensor, or array of strings, with these sizes.

        Raises EnforceNotMet: there are more or fewer values.
        """
        numel = math.prod(sizes)
        if numel != len(self.values):
            raise EnforceNotMet(
                f"There are {len(self.values)} values, but the sizes {list(sizes)} need {numel} "
                "elements.",
                condition="output->numel() == values_.numel()",
            )
        if self.dtype is c10.string:
            return self.values.reshape(sizes)
        dtype = self.torch_dtype
        if not isinstance(self.values, array):
            return torch.tensor(self.values, dtype=dtype, device=device).view(sizes)
        code = torch.float32 if self.values.typecode == "f" else torch.int64
        made = torch.frombuffer(self.values, dtype=code).view(sizes)
        return made.to(device=device, dtype=dtype, copy=True)


def given_tensor_fill(
    x: Tensor | None = None, *, sizes: FillSizes, values: GivenValues, device: TargetDevice = "cpu"
) -> Tensor:
    """Fill with the given elements, of the type in the name, or else float32 or `dtype`."""
    return values.filled(sizes.of(x), device)


for _name, _type in _TYPES.items():
    # Strings are on the CPU only.
    _devices = ("cpu", "cuda") if _type.is_pod else ("cpu",)
    _effects = () if _type.is_pod else ("values",)
    operator(_name, devices=_devices, effects=_effects, **FILL)(given_tensor_fill)


@operator("GivenTensorByteStringToUInt8Fill", **FILL)
def given_bytes_fill(
    x: Tensor | None = None,
    *,
    sizes: FillSizes,
    values: list[bytes] = [],  # noqa: B006
    device: TargetDevice = "cpu",
) -> Tensor:
    """Fill with the bytes of the first of the given strings."""
    made = sizes.of(x)
    data = values[0] if values else b""
    needed = math.prod(made)
    require(needed == len(data), f"the string has the {needed} bytes of the output", len(data))
    return torch.tensor(list(data), dtype=torch.uint8, device=device).view(made)
