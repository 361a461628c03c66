# SPDX-License-Identifier: Apache-2.0
"""Fills with the elements given in the argument `values`."""

from __future__ import annotations

from array import array

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.strings import as_bytes
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.fill_operator import FillOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import enforce
from bridge.caffe2.operators.base.variants import register_variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


# The types that GivenTensorFill supports.
_GIVEN = (c10.float32, c10.float64, c10.bool, c10.int16, c10.int32, c10.int64, c10.string)


class _GivenTensor(FillOperator):
    """A fill with the elements in the argument `values`, as many as the output has."""

    dtype: TypeMeta = c10.float32

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        enforce(self.HasArgument("values"), "The argument values is missing.")
        self._dtype = self.dtype
        if self._dtype is c10.float32 and self.HasArgument("dtype"):
            self._dtype = type_of_argument(self.GetSingleArgument("dtype"), "dtype")
        enforce(
            self._dtype in _GIVEN, f"{self._definition.type} does not support {self._dtype.name}."
        )
        self._values = self._given()
        kinds: tuple[type, ...] = (int,)
        if self._dtype is c10.string:
            kinds = (str, bytes)
        elif self._dtype in (c10.float32, c10.float64):
            kinds = (int, float)
        if self._values and not isinstance(self._values[0], kinds):
            raise EnforceTypeError(
                f"The values are {type(self._values[0]).__name__}, but the tensor's type is "
                f"{self._dtype.name}."
            )

    def RunOnDevice(self) -> None:
        sizes = self.sizes()
        numel = 1
        for size in sizes:
            numel *= size
        if numel != len(self._values):
            raise EnforceNotMet(
                f"There are {len(self._values)} values, but the sizes {list(sizes)} need {numel} "
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
    """Fill with the given floats, or with elements of type `dtype`."""


for _kind, _type in {
    "Double": c10.float64,
    "Bool": c10.bool,
    "Int": c10.int32,
    "Int16": c10.int16,
    "Int64": c10.int64,
    "String": c10.string,
}.items():
    register_variant(
        f"GivenTensor{_kind}Fill",
        _GivenTensor,
        f"Fill with given elements of {_type.name}.",
        dtype=_type,
    )


@register_operator("GivenTensorByteStringToUInt8Fill")
class GivenTensorByteStringToUInt8Fill(FillOperator):
    """Fill with the bytes of the first of the given strings."""

    def RunOnDevice(self) -> None:
        values = self.GetRepeatedArgument("values")
        sizes = self.sizes()
        data = as_bytes(values[0]) if values else b""
        target = torch.Size(sizes)
        enforce(
            target.numel() == len(data),
            f"The string has {len(data)} bytes, but the sizes {sizes} need {target.numel()}.",
        )
        self.put(0, torch.tensor(list(data), dtype=torch.uint8).reshape(target))
