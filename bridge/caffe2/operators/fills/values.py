# SPDX-License-Identifier: Apache-2.0
"""Fills with one value, everywhere or on the diagonal, consecutive numbers, or given elements."""

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
from bridge.caffe2.execution.function_operator import Out, TargetDevice, operator
from bridge.caffe2.operators.base import length_kernels
from bridge.caffe2.operators.base.checks import INT32, NUMBERS, require
from bridge.caffe2.operators.base.cpu_kernels import takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import positions_in_segments, segment_ids

# The common parts of the declarations of fills. Input 0 says the sizes, whatever its elements.
FILL: dict[str, Any] = {
    "inplace": "0>0",
    "gradient": "none",
    "types": None,
    "on_host": ("x",),
    "rearranges": (),
}


class FillSizes:
    """The sizes of an output. They are

    - without inputs: the argument `shape`;
    - with an input: the sizes of input 0, followed by the argument `extra_shape`;
    - with `input_as_shape`: the elements of input 0 (int64), followed by `extra_shape`.

    Raises EnforceNotMet: arguments contradict the number of inputs, or `shape` is not a list.
    Follows FillerOp, caffe2/operators/filler_op.h, PyTorch 1.8.1.
    """

    takes = "int[] shape, int[] extra_shape, bool input_as_shape"

    def __init__(self, arguments: Arguments) -> None:
        def given(name: str) -> list[int]:
            return arguments.repeated(name, (0,)) if arguments.has(name) else []

        self.shape, self.extra = shape, extra = given("shape"), given("extra_shape")
        self.by_elements = arguments.single("input_as_shape", False)
        if arguments.inputs:
            require(not shape, "sizes come from the argument shape or an input, not both", shape)
        else:
            require(not extra, "extra_shape is given with an input only", extra)
            require(not self.by_elements, "input_as_shape is given with an input only")
            number = "i" in arguments.fields("shape")
            require(bool(shape) or not number, "shape is a list, as in shape=[2, 3]")

    def of(self, x: Tensor | None) -> list[int]:
        """Return the sizes, where `x` is input 0, or None without inputs.

        Raises EnforceNotMet: `x` does not have the sizes as elements, if it should.
        """
        if x is None:
            return self.shape
        if not self.by_elements:
            return [*x.shape, *self.extra]
        require(x.dtype == torch.int64, "input 0, with input_as_shape, is of type int64", x.dtype)
        require(x.dim() == 1, "input 0, with input_as_shape, has one dimension", x)
        require(x.numel() > 0, "input 0, with input_as_shape, has elements", x)
        sizes: list[int] = x.tolist()
        return sizes + self.extra


def room(sizes: list[int], dtype: Any, device: Any, out: Tensor | None) -> Tensor:
    """Return a tensor to fill: `out` if it has these sizes, which may be the elements of an input.

    Otherwise a new one.
    """
    if out is not None and list(out.shape) == list(sizes):
        return out
    return torch.empty(sizes, dtype=dtype, device=device)


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


@operator("RangeFill", **FILL)
def range_fill(
    x: Tensor | None = None, *, sizes: FillSizes, device: TargetDevice = "cpu", out: Out = None
) -> Tensor:
    """Fill with 0, 1, 2, ... as float32."""
    made = sizes.of(x)
    n = math.prod(made)
    if out is not None and list(out.shape) == list(made):
        torch.arange(n, out=out.view(-1))
        return out
    return torch.arange(n, dtype=torch.float32, device=device).view(made)


@operator("LengthsRangeFill", gradient="none", types=INT32, effects=("values",))
def lengths_range_fill(lengths: Tensor, *, out: Out = None) -> Tensor:
    """Concatenate 0 .. n-1 for each n of the lengths: [2, 3] -> [0, 1, 0, 1, 2]."""
    require(lengths.dim() == 1, "the lengths have one dimension", lengths)
    if takes_kernels(lengths, dtype=lengths.dtype):
        segments = lengths.shape[0]
        n = length_kernels.sum_of_lengths(lengths, segments)
        made = lengths.new_empty(n) if out is None or out.shape != (n,) else out
        return length_kernels.places_by_lengths(made, lengths, segments, n)
    return positions_in_segments(lengths, segment_ids(lengths)).to(torch.int32)


@operator("Range", gradient="none", types=NUMBERS, sized_by=("first", "second", "third"))
def range_of(first: Tensor, second: Tensor | None = None, third: Tensor | None = None) -> Tensor:
    """start, start + step, ... before stop. Inputs: stop; start, stop; or start, stop, step."""
    given = [x for x in (first, second, third) if x is not None]
    for x in given:
        require(x.numel() == 1, "the inputs have one element each", x)
    numbers = [x.item() for x in given]
    start, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    require(step != 0, "Step size cannot be 0.")
    quotient = (stop - start) / step
    n = max(math.ceil(quotient), 0)
    if not first.dtype.is_floating_point:
        n = max(int(-((start - stop) // step)), 0)
        if (stop - start) % step and step < 0:
            # Caffe2 divides towards zero, and rounds up only for positive steps.
            n = max(int(quotient), 0)
    return start + step * torch.arange(n, dtype=first.dtype, device=first.device)


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
