# SPDX-License-Identifier: Apache-2.0
"""The ATen-style API: at.Tensor, its factories, and every function of torch.

Any other ``at.<name>`` is ``torch.<name>``, ``torch.nn.functional.<name>``, ATen's operator or
torch.Tensor's method of that name, with at.Tensors as arguments and results; it runs on the same
memory. So do ``at.linalg.<name>`` and torch's other namespaces: ``fft``, ``masked``, ``nn``,
``signal``, ``sparse`` and ``special``.

>>> from bridge import at
>>> at.softmax(at.zeros(2), 0).tolist()
[0.5, 0.5]
>>> at.linalg.norm(at.ones(4)).item(), at.linalg_norm(at.ones(4)).item()
(2.0, 2.0)
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress as _suppress

from bridge.annotation import Any
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
from bridge.at.tensor import torch_runner as _torch_runner
from bridge.at.torch_factories import arange, eye, rand, randn, tensor
from bridge.at.torch_names import ATTRIBUTES as _ATTRIBUTES
from bridge.at.torch_names import METHODS as _METHODS
from bridge.at.torch_ops import OPERATORS as _OPERATORS
from bridge.exchange.torch_api import on_torch_loaded as _call_on_torch_loaded
from bridge.lazy import listed as _listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    # What torch has besides, by its own stubs: tools/make_torch_stubs.py.
    from bridge.at.torch_functions import *  # noqa: F403

__all__ = [
    "Tensor", "arange", "empty", "empty_like", "empty_strided", "eye", "from_blob", "full",
    "full_like", "ones", "ones_like", "rand", "randn", "tensor", "zeros", "zeros_like",
]  # fmt: skip


def _install(methods: Iterable[str], attributes: Iterable[str]) -> None:
    """Add operations of torch to at.Tensor, unless it defines one of that name."""
    for name in methods:
        _install_one(name, _torch_ops.method(_torch_runner.run, name))
    for name in attributes:
        _install_one(name, _torch_ops.attribute(_torch_runner.run, name))


def _on_torch_loaded() -> None:
    """Add the methods of a torch newer than `torch_names`, and all functions of torch.

    As plain attributes of this module, functions are found faster than by ``__getattr__``.
    """
    _install(*_torch_ops.newer_names())
    names = globals()
    for name, function in _torch_ops.functions(_torch_runner.run):
        names.setdefault(name, function)


def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """Return the namespace of the Python array API standard, 2024.12, over at.Tensor.

    `api_version`: the version of the standard that the caller needs, at most 2024.12.

    Raises ValueError: a version that the namespace does not have.

    >>> from bridge import at
    >>> xp = at.ones(2).__array_namespace__()
    >>> xp.__array_api_version__, xp.sqrt(xp.asarray([4.0, 9.0])).tolist()
    ('2024.12', [2.0, 3.0])
    """
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(
            f"at.Tensor has the array API standard up to 2024.12, and not {api_version!r}."
        )
    from bridge.at import array_api

    return array_api


_array_namespace.__name__ = "__array_namespace__"
_array_namespace.__qualname__ = "Tensor.__array_namespace__"
_install_one("__array_namespace__", _array_namespace)
_install(_METHODS, _ATTRIBUTES)
_call_on_torch_loaded(_on_torch_loaded)


def __dir__() -> list[str]:
    """Return the names, torch's functions among them; imports torch, where it is installed."""
    names: set[str] = set()
    with _suppress(ImportError):
        names.update(name for name, _ in _torch_ops.functions(_torch_runner.run))
    return _listed(__name__, names)()


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        found: Any = _torch_ops.namespace(_torch_runner.run, name)
        if found is None:
            if name.startswith("__") and name not in _OPERATORS:
                raise AttributeError(f"module 'bridge.at' has no attribute {name!r}")
            found = _torch_ops.function(_torch_runner.run, name)
        return globals().setdefault(name, found)
