# SPDX-License-Identifier: Apache-2.0
"""Fills with values that are given: constants, lists, ranges, diagonals."""

from __future__ import annotations

import math
from array import array

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.strings import as_bytes
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.filler import Filler
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows import places_in_segments, segments_of_lengths
from bridge.caffe2.operators.base.torch_operator import INT32, INTS, NUMBERS, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []

_ZEROS: dict[TypeMeta, Any] = {c10.float32: 0.0, c10.float64: 0.0, c10.bool: False, c10.string: ""}

# What a GivenTensorFill may be told to make.
_GIVEN = (c10.float32, c10.float64, c10.bool, c10.int16, c10.int32, c10.int64, c10.string)


def _bits(dtype: TypeMeta) -> tuple[int, int]:
    """Return the least and the greatest integer of a type."""
    bits = 8 * dtype.itemsize
    return (0, 2**bits - 1) if dtype.name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


class _OneValue(Filler):
    """A fill by argument `value`, of the type `dtype`, or else of the type that `value` has."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if self.HasArgument("dtype"):
            self._dtype = type_of_argument(self.GetSingleArgument("dtype", 1), "dtype")
        elif self.HasSingleArgumentOfType("value", int):
            self._dtype = c10.int64
        elif not self.HasArgument("value") or self.HasSingleArgumentOfType("value", float):
            self._dtype = c10.float32
        else:
            raise EnforceTypeError("The argument value is a number, unless dtype says otherwise.")
        enforce(
            self._dtype is not c10.float16,
            f"{self._definition.type} makes no float16; Float16ConstantFill does.",
        )
        self._value = self.GetSingleArgument("value", _ZEROS.get(self._dtype, 0))
        if self._dtype is c10.string:
            self._value = as_bytes(self._value)
        elif type(self._value) is int:
            least, most = _bits(self._dtype)
            enforce(
                least <= self._value <= most, f"The value {self._value} is no {self._dtype.name}."
            )


@register_operator("ConstantFill")
class ConstantFill(_OneValue):
    """Fill with `value`, or with the one element of input 1."""

    def RunOnDevice(self) -> None:
        value = self._value
        if self.InputSize() == 2:
            enforce(self._dtype is not c10.string, "Strings are not filled from a tensor.")
            given = self.x(1, (self._dtype,))
            enforce(given.numel() == 1, f"Input 1 has {given.numel()} elements, not 1.")
            value = given.item()
        self.fill(value, self._dtype)


@register_operator("Float16ConstantFill")
class Float16ConstantFill(Filler):
    """Fill with `value` in half precision."""

    def RunOnDevice(self) -> None:
        self.fill(self.GetSingleArgument("value", 0.0), c10.float16)


@register_operator("DiagonalFill")
class DiagonalFill(_OneValue):
    """Zeros with `value` on the diagonal of two dimensions, or of more of equal size."""

    def RunOnDevice(self) -> None:
        sizes = self.sizes()
        enforce(self._dtype is not c10.string, "A diagonal is of numbers.")
        enforce(len(sizes) >= 2, f"A diagonal takes two dimensions or more, not {len(sizes)}.")
        enforce(
            len(sizes) == 2 or len(set(sizes)) == 1,
            f"The sizes of more than two dimensions have to be equal, not {sizes}.",
        )
        flat = self.out(0, sizes, self._dtype).zero_().view(-1)
        if len(sizes) == 2:
            # Beyond the square of a tall matrix Caffe2 goes on in the next column.
            flat[:: sizes[1] + 1] = self._value
        elif flat.numel():
            step = sum(sizes[0] ** i for i in range(len(sizes)))
            flat[::step] = self._value


class _GivenTensor(Filler):
    """A fill with the elements of argument `values`, as many as the sizes say."""

    dtype: TypeMeta = c10.float32

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        enforce(self.HasArgument("values"), "The argument values is missing.")
        self._dtype = self.dtype
        if self._dtype is c10.float32 and self.HasArgument("dtype"):
            self._dtype = type_of_argument(self.GetSingleArgument("dtype"), "dtype")
        enforce(self._dtype in _GIVEN, f"{self._definition.type} makes no {self._dtype.name}.")
        self._values = self._given()
        kinds: tuple[type, ...] = (int,)
        if self._dtype is c10.string:
            kinds = (str, bytes)
        elif self._dtype in (c10.float32, c10.float64):
            kinds = (int, float)
        if self._values and not isinstance(self._values[0], kinds):
            raise EnforceTypeError(
                f"The values are {type(self._values[0]).__name__}, and the tensor is to be of "
                f"{self._dtype.name}."
            )

    def RunOnDevice(self) -> None:
        sizes = self.sizes()
        numel = 1
        for size in sizes:
            numel *= size
        if numel != len(self._values):
            raise EnforceNotMet(
                f"There are {len(self._values)} values, and the sizes {list(sizes)} make {numel} "
                "elements.",
                condition="output->numel() == values_.numel()",
            )
        if self._dtype is c10.string:
            self.put_strings(0, sizes, [as_bytes(one) for one in self._values])
            return
        out = self.out(0, sizes, self._dtype)
        if isinstance(self._values, array):
            code = torch.float32 if self._values.typecode == "f" else torch.int64
            out.copy_(torch.frombuffer(self._values, dtype=code).view(out.shape))
        else:
            out.copy_(torch.tensor(self._values, dtype=self._dtype.torch).view(out.shape))

    def _given(self) -> Any:
        """Return the values: a list, or an array where there are many numbers."""
        held = self._definition.arguments["values"]
        many = next((one for one in held.values() if isinstance(one, array)), None)
        return self.GetRepeatedArgument("values") if many is None else many


@register_operator("GivenTensorFill")
class GivenTensorFill(_GivenTensor):
    """Fill with given floats, or with elements of the type `dtype`."""


for _kind, _type in {
    "Double": c10.float64,
    "Bool": c10.bool,
    "Int": c10.int32,
    "Int16": c10.int16,
    "Int64": c10.int64,
    "String": c10.string,
}.items():
    _name = f"GivenTensor{_kind}Fill"
    _members = {
        "__doc__": f"Fill with given elements of {_type.name}.",
        "__module__": __name__,
        "dtype": _type,
    }
    register_operator(_name)(type(_name, (_GivenTensor,), _members))


@register_operator("GivenTensorByteStringToUInt8Fill")
class GivenTensorByteStringToUInt8Fill(Filler):
    """Fill with the bytes of the first of the given strings."""

    def RunOnDevice(self) -> None:
        values = self.GetRepeatedArgument("values")
        sizes = self.sizes()
        data = as_bytes(values[0]) if values else b""
        target = torch.Size(sizes)
        enforce(
            target.numel() == len(data),
            f"The string has {len(data)} bytes, and the sizes {sizes} make {target.numel()}.",
        )
        self.put(0, torch.tensor(list(data), dtype=torch.uint8).reshape(target))


@register_operator("RangeFill")
class RangeFill(Filler):
    """Fill with 0, 1, 2, ... as float32."""

    def RunOnDevice(self) -> None:
        out = self.out(0, self.sizes(), c10.float32)
        torch.arange(out.numel(), out=out.view(-1))


@register_operator("LengthsRangeFill")
class LengthsRangeFill(TorchOperator):
    """Fill with 0 .. n-1 for each n of input 0: [2, 3] -> [0, 1, 0, 1, 2]."""

    def RunOnDevice(self) -> None:
        lengths = self.x(0, INT32)
        enforce(lengths.dim() == 1, "The lengths have to have one dimension.")
        places = places_in_segments(lengths, segments_of_lengths(lengths))
        self.put(0, places.to(torch.int32))


@register_operator("Range")
class Range(TorchOperator):
    """start, start + step, ... below stop. Inputs: stop; start, stop; or start, stop, step."""

    def RunOnDevice(self) -> None:
        dtype = self.Input(0).dtype()
        numbers = []
        for i in range(self.InputSize()):
            x = self.x(i, (dtype,) if i else NUMBERS)
            enforce(x.numel() == 1, f"Input {i} has to be a number.")
            numbers.append(x.item())
        start, stop, step = 0, numbers[0], 1
        if len(numbers) > 1:
            start, stop, step = numbers[0], numbers[1], ([*numbers, 1])[2]
        enforce(step != 0, "Step size cannot be 0.")
        quotient = (stop - start) / step
        n = max(math.ceil(quotient), 0)
        if dtype in INTS:
            n = max(-((start - stop) // step), 0)
            if (stop - start) % step and step < 0:
                # Caffe2 divides towards zero, and adds one for what remains only if it steps up.
                n = max(int(quotient), 0)
        self.put(0, start + step * torch.arange(n, dtype=dtype.torch))
