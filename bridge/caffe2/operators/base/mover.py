# SPDX-License-Identifier: Apache-2.0
"""Mover: operators that put elements elsewhere and do not look at them."""

from __future__ import annotations

from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.torch_io import operand
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import TorchOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Mover"]


class Mover(TorchOperator):
    """An operator that moves elements of any type, strings too; implement `move`.

    Strings and other objects are moved by their positions: `take` gives a tensor of numbers in
    place of them, and `give` puts the objects where their numbers went.
    """

    _items: list[Any]

    def RunOnDevice(self) -> None:
        """Move."""
        self._items = []
        try:
            self.move()
        finally:
            self._items = []

    def move(self) -> None:
        """Return the outputs what was taken from the inputs."""
        raise NotImplementedError

    def take(self, i: int) -> torch.Tensor:
        """Return the elements of input `i`, or numbers that stand for them."""
        tensor = self.Input(i)
        dtype = tensor.dtype()
        if not dtype or dtype.is_pod:
            return operand(tensor)
        start = len(self._items)
        self._items += tensor.data(dtype)[:]
        return torch.arange(start, len(self._items)).view(torch.Size(tensor.sizes()))

    def give(self, o: int, result: torch.Tensor, dtype: TypeMeta) -> None:
        """Have output `o` hold `result`, a new tensor, whose elements are of type `dtype`."""
        if dtype.is_pod:
            self.put(o, result)
        else:
            places = result.reshape(-1).tolist()
            self.put_objects(o, result.shape, [self._items[place] for place in places], dtype)

    def same_elements(self, sizes: Sequence[int], o: int = 0, i: int = 0) -> None:
        """Have output `o` hold a copy of input `i` in other sizes; in place only the sizes change.

        Raises EnforceNotMet: the numbers of elements differ; or the input has no elements yet.
        """
        source = self.Input(i)
        numel = 1
        for size in sizes:
            numel *= size
        if numel != source.numel() or min(sizes, default=0) < 0:
            raise EnforceNotMet(
                f"{source.numel()} elements, of sizes {list(source.sizes())}, do not take the "
                f"sizes {list(sizes)}.",
                condition="numel() == new numel",
            )
        if not self.IsInputOutputAlias(i, o):
            self.Output(o).CopyFrom(source)
        self.Output(o).Reshape(list(sizes))
