# SPDX-License-Identifier: Apache-2.0
"""The ATen-style API: at.Tensor, its factories, and every function of torch.

Any other ``at.<name>`` is ``torch.<name>``, or ``torch.nn.functional.<name>``, with at.Tensors as
arguments and results; it runs on the same memory.

>>> from bridge import at
>>> at.softmax(at.zeros(2), 0).tolist()
[0.5, 0.5]
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.at import data as _data
from bridge.at import memory as _memory
from bridge.at import torch_ops as _torch_ops
from bridge.at.factories import (
    empty,
    empty_like,
    empty_strided,
    from_blob,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from bridge.at.tensor import Tensor
from bridge.at.tensor import install as _install_one
from bridge.at.torch_factories import arange, eye, rand, randn, tensor
from bridge.at.torch_names import ATTRIBUTES as _ATTRIBUTES
from bridge.at.torch_names import METHODS as _METHODS
from bridge.exchange.torch_api import on_torch_loaded as _on_torch_loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Tensor",
    "arange",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "from_blob",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "rand",
    "randn",
    "tensor",
    "zeros",
    "zeros_like",
]

_data.set_wrap(Tensor._wrap)
_torch_ops.set_hooks(
    Tensor._wrap,
    _data.write_back,
    _memory.mark_readonly,
    _memory.mark_owned,
    _memory.take_metadata,
)


def _install(methods: Iterable[str], attributes: Iterable[str]) -> None:
    """Return at.Tensor the operations of torch that it has not of its own."""
    for name in methods:
        _install_one(name, _torch_ops.operation(name))
    for name in attributes:
        _install_one(name, _torch_ops.attribute(name))


def _torch_is_here() -> None:
    """What a torch newer than our list has besides; and this module's functions as plain
    attributes, which Python finds faster than by ``__getattr__``."""
    _install(*_torch_ops.newer_names())
    names = globals()
    for name, function in _torch_ops.functions():
        names.setdefault(name, function)
    names.pop("__getattr__", None)


_install(_METHODS, _ATTRIBUTES)
_on_torch_loaded(_torch_is_here)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'bridge.at' has no attribute {name!r}")
    return _torch_ops.function(name)
