# SPDX-License-Identifier: Apache-2.0
"""The frameworks that have an adapter, each loaded when its first tensor is met or asked for.

An adapter is a module of one or both of

- ``give(x, copy)``: the framework's tensor of the memory of `x`, anything the bridge can import;
- ``bring(x, copy)``: the TensorImpl of a tensor of the framework's, or None to leave `x` to the
  general ways; a copy only where it must be, which ``copy=False`` refuses. With ``BUFFERED = True``
  it is asked for what shows no buffer of plain numbers.

torch and NumPy, whose tensors come and go in tens of nanoseconds, are compiled and not among them.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from bridge.c10.tensor_impl import TensorImpl

__all__ = ["adapter", "bringer", "buffered", "names"]

_NAMES = ("torch", "numpy", "jax", "tensorflow", "cupy", "at", "caffe2")
# The package that a class comes from -> the adapter that brings its objects in.
_BRINGS = {
    "jax": "jax",
    "jaxlib": "jax",
    "keras": "keras",
    "pyarrow": "arrow",
    "tensorflow": "tensorflow",
}
_INSTALL = {"arrow": "pyarrow", "cupy": "cupy-cuda12x"}
_loaded: dict[str, ModuleType] = {}


def names() -> tuple[str, ...]:
    """What `bridge.convert` converts to."""
    return _NAMES


def adapter(name: str) -> Any:
    """The adapter of a framework, which is imported.

    Raises ImportError, with what to install: the framework is not there.
    """
    module = _loaded.get(name)
    if module is None:
        try:
            module = import_module(f"bridge.exchange.{name}")
        except ImportError as error:
            raise ImportError(
                f"{name} is needed here and cannot be imported: {error}. Install it with: "
                f"pip install {_INSTALL.get(name, name)}"
            ) from error
        _loaded[name] = module
    return module


def bringer(cls: type, own: bool = False) -> Callable[[Any, bool | None], TensorImpl | None] | None:
    """The `bring` for objects of `cls`, a class of a framework's or (unless `own`) derived of one.

    None: there is no adapter, or its framework is only named and not loaded.
    """
    for base in (cls,) if own else cls.__mro__:
        package = str(base.__module__).partition(".")[0]
        name = _BRINGS.get(package)
        if name is not None and package in sys.modules:
            bring: Callable[[Any, bool | None], TensorImpl | None] = adapter(name).bring
            return bring
    return None


def buffered(cls: type) -> bool:
    """Whether the framework of `cls` has the buffer protocol looked at before its `bring`."""
    name = _BRINGS.get(str(cls.__module__).partition(".")[0])
    return name is not None and getattr(adapter(name), "BUFFERED", False)
