# SPDX-License-Identifier: Apache-2.0
"""Arguments of a sample on plain tensors and on at.Tensors of several kinds of memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import bridge
from bridge import at

# A maker returns a plain tensor and an at.Tensor with the values of a tensor.
Maker = Callable[[torch.Tensor], tuple[torch.Tensor, at.Tensor]]


def imported(t: torch.Tensor) -> tuple[torch.Tensor, at.Tensor]:
    """torch's memory, with the strides of `t`."""
    return t.clone(), bridge.from_dlpack(t.clone())


def owned(t: torch.Tensor) -> tuple[torch.Tensor, at.Tensor]:
    """Memory of the bridge."""
    x = at.empty(tuple(t.shape), dtype=t.dtype)
    x.copy_(t)
    return t.clone(memory_format=torch.contiguous_format), x


def numpy_backed(t: torch.Tensor) -> tuple[torch.Tensor, at.Tensor]:
    """NumPy's memory, with the strides of `t`."""
    return t.clone(), bridge.from_dlpack(bridge.to_numpy(t.clone()).copy("K"))


def view(t: torch.Tensor) -> tuple[torch.Tensor, at.Tensor]:
    """The middle of a bigger storage of the bridge."""
    n = t.numel()
    plain = torch.zeros(n + 7, dtype=t.dtype)[3 : 3 + n].view(t.shape)
    x = at.zeros(n + 7, dtype=t.dtype)[3 : 3 + n].view(tuple(t.shape))
    plain.copy_(t)
    x.copy_(t)
    return plain, x


def readonly(t: torch.Tensor) -> tuple[torch.Tensor, at.Tensor]:
    """NumPy's memory that is not writable."""
    array = bridge.to_numpy(t.clone()).copy("K")
    array.flags.writeable = False
    return t.clone(), bridge.from_dlpack(array)


class Arguments:
    """The arguments of a sample, plain and of the bridge; one tensor in it stays one."""

    def __init__(self, sample: Any, make: Maker) -> None:
        self._make = make
        self._made: dict[int, tuple[Any, Any]] = {}
        self._kept: list[Any] = []
        given = (sample.input, tuple(sample.args), dict(sample.kwargs))
        self.plain = self._each(given, 0)
        self.ours = self._each(given, 1)
        self.pairs = [pair for pair in self._made.values() if pair[0] is not pair[1]]

    def _each(self, value: Any, which: int) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._made:
                self._kept.append(value)
                self._made[id(value)] = self._pair(value)
            return self._made[id(value)][which]
        if type(value) in (tuple, list):
            return type(value)(self._each(one, which) for one in value)
        if type(value) is dict:
            return {key: self._each(one, which) for key, one in value.items()}
        return value

    def _pair(self, t: torch.Tensor) -> tuple[Any, Any]:
        plain = t.layout == torch.strided and not t.is_nested and t.device.type == "cpu"
        if not plain or type(t) is not torch.Tensor or t.is_quantized:
            return t, t
        return self._make(t.detach().resolve_conj().resolve_neg())
