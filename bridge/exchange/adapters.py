# SPDX-License-Identifier: Apache-2.0
"""The table of framework adapters. Each is loaded when its first tensor is seen or asked for.

An adapter is a module ``bridge/exchange/<name>.py`` (or ``.pyx``) with one or both of

- ``import_(x, copy)``: return the TensorImpl of a tensor of the framework, or None to leave `x` to
  the general protocols. Shared; copied only if sharing is impossible, and then BufferError under
  ``copy=False``. With ``PREFERS_BUFFER = True`` objects that export a buffer of plain numbers are
  imported by that and not by ``import_``.
- ``export(x, copy)``: return the framework's tensor of the memory of `x`, which is anything that
  the bridge can import.

To add a framework, write the module and add its lines to the tables below.

torch and NumPy, whose tensors are converted in tens of nanoseconds, are compiled and not in the
tables.
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

__all__ = ["TARGETS", "adapter", "importer_of", "prefers_buffer"]

# The names that `bridge.convert` accepts.
TARGETS = ("torch", "numpy", "jax", "tensorflow", "cupy", "at", "caffe2")
# The package that a class is defined in -> the adapter that imports its objects.
_IMPORTERS = {
    "jax": "jax",
    "jaxlib": "jax",
    "keras": "keras",
    "pyarrow": "arrow",
    "tensorflow": "tensorflow",
}
# What to install if an adapter cannot be loaded, if it is not its own name.
_PACKAGES = {"arrow": "pyarrow", "cupy": "cupy-cuda12x"}
_loaded: dict[str, ModuleType] = {}


def adapter(name: str) -> Any:
    """Return the adapter module of a framework; imports the framework.

    Raises ImportError: the framework is not installed.
    """
    module = _loaded.get(name)
    if module is None:
        try:
            module = import_module(f"bridge.exchange.{name}")
        except ImportError as error:
            raise ImportError(
                f"{name} is needed here and cannot be imported: {error}. Install it with: "
                f"pip install {_PACKAGES.get(name, name)}"
            ) from error
        _loaded[name] = module
    return module


def importer_of(
    cls: type, own: bool = False
) -> Callable[[Any, bool | None], TensorImpl | None] | None:
    """Return the ``import_`` for objects of `cls`, a class of a framework or derived from one.

    `own`: derived classes do not count. Returns None if no adapter exists or its framework is not
    loaded.
    """
    for base in (cls,) if own else cls.__mro__:
        package = str(base.__module__).partition(".")[0]
        name = _IMPORTERS.get(package)
        if name is not None and package in sys.modules:
            import_: Callable[[Any, bool | None], TensorImpl | None] = adapter(name).import_
            return import_
    return None


def prefers_buffer(cls: type) -> bool:
    """Return whether the adapter for `cls` asks for the buffer protocol to be tried first."""
    name = _IMPORTERS.get(str(cls.__module__).partition(".")[0])
    return name is not None and getattr(adapter(name), "PREFERS_BUFFER", False)
