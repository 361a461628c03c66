# SPDX-License-Identifier: Apache-2.0
"""Names of frameworks and the modules that hand tensors to them, loaded on demand."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any

__all__ = ["adapter", "names"]

_NAMES = ("torch", "numpy", "jax", "tensorflow", "cupy", "at", "caffe2")


def names() -> tuple[str, ...]:
    """What `bridge.convert` converts to."""
    return _NAMES


def adapter(name: str) -> Any:
    """The module of ``give(x, copy)`` for a framework.

    Raises ImportError, with what to install: the framework is not there.
    """
    try:
        return import_module(f"bridge.exchange.to_{name}")
    except ImportError as error:
        raise ImportError(
            f"{name} is needed here and cannot be imported: {error}. Install it with: "
            f"pip install {name}"
        ) from error
