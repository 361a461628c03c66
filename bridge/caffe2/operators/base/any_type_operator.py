# SPDX-License-Identifier: Apache-2.0
"""AnyTypeOperator: the base class of operators that rearrange elements of any type."""

from __future__ import annotations

import torch

from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.torch_io import operand
from bridge.caffe2.operators.base.torch_operator import TorchOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["AnyTypeOperator"]


class AnyTypeOperator(TorchOperator):
    """An operator that rearranges elements of any type, strings too; implement `move`.

    Strings and other objects are represented by indices: `load` returns a tensor of indices for
    them, and `store` writes the objects that the indices of the result stand for.
    """

    _items: list[Any]

    def RunOnDevice(self) -> None:
        """Run `move`, then forget the loaded objects."""
        self._items = []
        try:
            self.move()
        finally:
            self._items = []

    def move(self) -> None:
        """Compute the outputs: `load` the inputs, rearrange, `store` the results."""
        raise NotImplementedError

    def load(self, i: int) -> torch.Tensor:
        """Return input `i` as a torch tensor over its memory, or of indices of its objects."""
        tensor = self.Input(i)
        dtype = tensor.dtype()
        if not dtype or dtype.is_pod:
            return operand(tensor)
        start = len(self._items)
        self._items += tensor.data(dtype)[:]
        return torch.arange(start, len(self._items), device="cpu").view(torch.Size(tensor.sizes()))

    def store(self, o: int, result: torch.Tensor, dtype: TypeMeta) -> None:
        """Set output `o` to `result`, a new tensor, as elements of type `dtype`."""
        if dtype.is_pod:
            self.put(o, result)
        else:
            places = result.reshape(-1).tolist()
            self.put_objects(o, result.shape, [self._items[place] for place in places], dtype)

    def store_reshaped(self, sizes: Sequence[int], o: int = 0, i: int = 0) -> None:
        """Set output `o` to a copy of input `i` with other sizes; in place only the sizes change.

        Raises EnforceNotMet: the numbers of elements differ, or the input is not allocated.
        """
        source = self.Input(i)
        numel = 1
        for size in sizes:
            numel *= size
        if numel != source.numel() or min(sizes, default=0) < 0:
            raise EnforceNotMet(
                f"{source.numel()} elements of sizes {list(source.sizes())} cannot be reshaped to "
                f"{list(sizes)}.",
                condition="numel() == new numel",
            )
        if not self.IsInputOutputAlias(i, o):
            self.Output(o).CopyFrom(source)
        self.Output(o).Reshape(list(sizes))
