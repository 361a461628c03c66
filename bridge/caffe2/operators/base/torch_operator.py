# SPDX-License-Identifier: Apache-2.0
"""TorchOperator: the base class of built-in operators on objects; procedure: one as a function.

An input is a torch tensor over the blob's memory (`x`). A result is either written by torch into
the output's own buffer (`out`, for use as ``out=``), or is a new torch tensor whose memory becomes
the output's (`put`). Neither is copied, with one exception: a new tensor that replaces an input in
place is copied into its memory, so that other tensors on that memory see the result.

An operator checks everything before it requests an output, and writes elements last, so that a
failed operator has changed nothing (`writes_last`). A result passed to `put` is contiguous and not
a view of an input, since outputs own their memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import torch

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.caffe2.blobs.torch_io import adopt, operand
from bridge.caffe2.execution.operator import Operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import INTS
from bridge.caffe2.tensor.tensor import Tensor


class TorchOperator(Operator):
    """A built-in operator; see the module."""

    writes_last = True
    _has_schema = True

    @property
    def _in_place(self) -> dict[int, int]:
        """The outputs that are in place of an input: {output: input}."""
        return self._definition.checked

    def x(self, i: int, types: Collection[TypeMeta] | None = None) -> torch.Tensor:
        """Return input `i` as a read-only torch tensor over the same memory.

        Raises EnforceNotMet: it is not a tensor, or not of one of `types`. BufferError: torch has
        no such element type.
        """
        tensor = self.given(i)
        if types is not None and tensor.dtype() not in types:
            self._refuse_type(i, types)
        return operand(tensor)

    def given(self, i: int) -> Tensor:
        """Return input `i`. Raises EnforceNotMet: it is not a tensor, or not on our device."""
        tensor = self.Input(i)
        if tensor.GetDeviceType() != self._definition.device.type:
            self._refuse_device(i)
        return tensor

    def out(self, i: int, sizes: Sequence[int], dtype: TypeMeta) -> torch.Tensor:
        """Return output `i`, with these sizes and this type, as a writable torch tensor.

        The existing buffer is used if it fits. An input in place keeps its elements only if its
        sizes and type do not change.
        """
        return operand(self.Output(i, sizes, dtype))

    def put(self, i: int, result: torch.Tensor) -> None:
        """Set output `i` to `result`, a tensor created by this run that nothing else refers to."""
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
        """Set output `i` to a number or bool without dimensions."""
        self.Output(i, [], dtype).mutable_data()[:] = value

    def put_strings(self, i: int, sizes: Sequence[int], items: list[bytes]) -> None:
        """Set output `i` to strings with these sizes."""
        self.put_objects(i, sizes, items, c10.string)

    def put_objects(self, i: int, sizes: Sequence[int], items: list[Any], dtype: TypeMeta) -> None:
        """Set output `i` to objects of type `dtype`, which is not a number, with these sizes."""
        on_host = self.device.type == c10.CPU
        tensor = self.Output(i) if on_host else Tensor(c10.CPU)  # where objects are
        tensor.Resize(sizes)
        tensor.mutable_data(dtype)[:] = items
        if not on_host:
            self.SetOutputTensor(i, tensor)

    def load(self, i: int, items: list[Any]) -> torch.Tensor:
        """Return input `i` as a torch tensor over its memory.

        Strings and other objects are appended to `items`; the result holds their indices there.
        """
        tensor = self.Input(i)
        dtype = tensor.dtype()
        if not dtype or dtype.is_pod:
            return operand(tensor)
        start = len(items)
        items += tensor.data(dtype)[:]
        return torch.arange(start, len(items), device="cpu").view(torch.Size(tensor.sizes()))

    def store(self, o: int, result: torch.Tensor, items: list[Any], dtype: TypeMeta) -> None:
        """Set output `o` to `result`, a new tensor, or to the items whose indices it holds."""
        if dtype.is_pod:
            self.put(o, result)
        else:
            places = result.reshape(-1).tolist()
            self.put_objects(o, result.shape, [items[place] for place in places], dtype)

    def strings(self, i: int) -> list[bytes]:
        """Return the strings of input `i` as a list."""
        return self.Input(i).data(c10.string)[:]

    def integers(self, i: int, types: Collection[TypeMeta] = INTS) -> list[int]:
        """Return the integers of input `i` as a list."""
        return self.x(i, types).reshape(-1).tolist()


Kind = TypeVar("Kind", bound=TorchOperator)
Run = Callable[[Kind], bool | None]


def procedure(
    name: str,
    devices: Any = ("cpu",),
    *,
    base: type[Kind] = TorchOperator,  # type: ignore[assignment]
    method: str = "RunOnDevice",
    effects: bool = False,
    keeps_sizes: bool = False,
    writes_last: bool = True,
    **declared: Any,
) -> Callable[[Run[Kind]], Run[Kind]]:
    """Return a decorator that declares a function of the operator as the operator `name`.

    The function is the method `method` of a class derived from `base`. effects: whether it may do
    more than write outputs, as writing a file. keeps_sizes: whether outputs in place then keep
    their sizes. writes_last: as of an operator. The others are for `register_operator`.
    """

    def register(function: Run[Kind]) -> Run[Kind]:
        members = {
            "__doc__": function.__doc__,
            "__module__": function.__module__,
            method: function,
            "_has_effects": effects,
            "_keeps_sizes": keeps_sizes,
            "writes_last": writes_last,
        }
        register_operator(name, devices, **declared)(type(name, (base,), members))
        return function

    return register
