# SPDX-License-Identifier: Apache-2.0
"""TorchOperator: what the built-in operators have in common.

An input is a torch tensor over the blob's memory (`x`). A result is either written by torch into
the output's own buffer (`out`, to be used as ``out=``), or is a new tensor of torch's whose memory
becomes the output's (`put`). Neither is copied, but for a new tensor that replaces an input in
place: whoever shares that memory is to see it.

An operator checks everything before it asks for an output, and writes elements last, so that one
that fails has changed nothing (`writes_last`). A result that is given to `put` is contiguous and
no view of an input, since outputs own their memory.
"""

from __future__ import annotations

from ctypes import c_float

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.caffe2.definitions.schemas import check_names
from bridge.caffe2.execution.operator import Operator
from bridge.caffe2.execution.torch_io import adopt, in_and_out, operand
from bridge.caffe2.operators.base.lazy_torch import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from bridge.caffe2.execution.definition import Definition

__all__ = [
    "BOOL",
    "FLOAT",
    "FLOATS",
    "INTS",
    "INT32",
    "INT64",
    "LARGEST",
    "NUMBERS",
    "NUMBERS_AND_BOOL",
    "TorchOperator",
    "enforce",
    "normal_axis",
    "plain_axis",
    "single",
]

# Element types that operators take, as Caffe2's TensorTypes<...> list them.
FLOAT = (c10.float32,)
FLOATS = (c10.float32, c10.float64)
INT32 = (c10.int32,)
INT64 = (c10.int64,)
INTS = (c10.int32, c10.int64)
BOOL = (c10.bool,)
NUMBERS = (c10.int32, c10.int64, c10.float32, c10.float64)
NUMBERS_AND_BOOL = (*NUMBERS, c10.bool)

LARGEST = 3.4028234663852886e38
"""The largest number of float32, Caffe2's limit where no other is said."""


class TorchOperator(Operator):
    """An operator of Caffe2's own; see the module."""

    writes_last = True

    @classmethod
    def check(cls, definition: Definition) -> dict[int, int]:
        """Check a definition; return the outputs that are blobs of inputs, by their numbers."""
        return check_names(definition.type, definition.inputs, definition.outputs) or {}

    @property
    def _in_place(self) -> dict[int, int]:
        """Outputs that are the blob of an input, by their numbers; empty for most."""
        in_place: dict[int, int] = self._definition.checked
        return in_place

    def x(self, i: int, types: Collection[TypeMeta] | None = None) -> torch.Tensor:
        """Return input `i` as a torch tensor over the same memory, to read.

        Raises EnforceNotMet: it is no tensor, or of none of `types`. BufferError: it has no
        elements that torch knows.
        """
        tensor = self.Input(i)
        if types is not None and tensor.dtype() not in types:
            self._refuse_type(i, types)
        return operand(tensor)

    def out(self, i: int, sizes: Sequence[int], dtype: TypeMeta) -> torch.Tensor:
        """Return output `i`, of these sizes and this type, as a torch tensor to write.

        Over the buffer that is there, if it fits; an input in place may lose its elements by it
        where sizes or type are not its own.
        """
        return operand(self.Output(i, sizes, dtype))

    def x_and_out(self, types: Collection[TypeMeta]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return input 0, and output 0 of its sizes and type, which may be the same."""
        both = in_and_out(self, types)
        if both is None:
            x = self.x(0, types)
            both = x, self.out(0, x.shape, self.Input(0).dtype())
        return both

    def put(self, i: int, result: torch.Tensor) -> None:
        """Have output `i` hold `result`, a tensor made by this run that nobody else keeps."""
        tensor = self.Output(i)
        if not result.is_contiguous():
            result = result.contiguous()
        if i in self._in_place and tensor.storage_initialized() and tensor.dtype():
            current = operand(tensor)
            if current.dtype == result.dtype and current.numel() == result.numel():
                tensor.Resize(result.shape)
                operand(tensor).copy_(result)
                return
        adopt(tensor, result)

    def put_value(self, i: int, value: int, dtype: TypeMeta) -> None:
        """Have output `i` hold one number or truth value, without dimensions."""
        self.Output(i, [], dtype).mutable_data()[:] = value

    def put_strings(self, i: int, sizes: Sequence[int], items: list[bytes]) -> None:
        """Have output `i` hold strings of these sizes."""
        self.put_objects(i, sizes, items, c10.string)

    def put_objects(self, i: int, sizes: Sequence[int], items: list[Any], dtype: TypeMeta) -> None:
        """Have output `i` hold objects, of a type that is no number, of these sizes."""
        tensor = self.Output(i)
        tensor.Resize(sizes)
        tensor.mutable_data(dtype)[:] = items

    def strings(self, i: int) -> list[bytes]:
        """Return the elements of input `i`, which are strings, as a list."""
        found: list[bytes] = self.Input(i).data(c10.string)[:]
        return found

    def integers(self, i: int, types: Collection[TypeMeta] = INTS) -> list[int]:
        """Return the elements of input `i`, which are integers, as a list."""
        found: list[int] = self.x(i, types).reshape(-1).tolist()
        return found

    def has_strings(self, i: int) -> bool:
        """Return whether input `i` is a tensor of strings."""
        return bool(self.Input(i).dtype() is c10.string)

    def _refuse_type(self, i: int, types: Collection[TypeMeta]) -> None:
        dtype = self.Input(i).dtype()
        raise EnforceTypeError(
            f"Input {i}, blob {self._definition.inputs[i]!r}, is of "
            f"{dtype.name if dtype else 'no type yet'}; {self._definition.type} takes "
            f"{', '.join(one.name for one in types)} there.",
            self._definition.type,
            condition="IsType(T)",
        )


def enforce(condition: bool, message: str) -> None:
    """Raise EnforceNotMet with `message` unless `condition` holds."""
    if not condition:
        raise EnforceNotMet(message)


def normal_axis(axis: int, ndim: int) -> int:
    """Return `axis`, negative from the end, as counted from the front.

    Raises EnforceNotMet: there is no such axis.
    """
    if not -ndim <= axis < ndim:
        raise EnforceNotMet(
            f"Axis {axis} is out of range for {ndim} dimensions.",
            condition="-dim() <= axis < dim()",
        )
    return axis + ndim if axis < 0 else axis


def plain_axis(axis: int, ndim: int) -> int:
    """Return `axis` as counted from the front, of operators that know -1 alone from the end.

    Raises EnforceNotMet: there is no such axis.
    """
    axis = ndim - 1 if axis == -1 else axis
    enforce(0 <= axis < ndim, f"Axis {axis} is not within {ndim} dimensions.")
    return axis


def single(value: float) -> float:
    """Round a number to float32, as Caffe2 holds its arguments."""
    return c_float(value).value
