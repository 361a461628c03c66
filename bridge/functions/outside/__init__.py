# SPDX-License-Identifier: Apache-2.0
"""The libraries whose gradients cross into a wrapped function, a file each.

Such a file has ``is_tracked(x)``, whether a gradient of the tensor is asked for, and
``call(inside, call, tracked)``, which runs the function for tensors of which those with the numbers
`tracked` are tracked, and returns its result as tensors of the library. `DETACH` is how its users
get a tensor without a gradient.
"""

from __future__ import annotations

from importlib import import_module

from bridge.annotation import Any

__all__ = ["LIBRARIES", "load"]

LIBRARIES = ("torch", "jax", "tensorflow", "paddle")
_loaded: dict[str, Any] = {}


def load(library: str) -> Any:
    """Return the module for the library; None: it has no gradients."""
    if library not in LIBRARIES:
        return None
    module = _loaded.get(library)
    if module is None:
        module = _loaded[library] = import_module(f"{__name__}.{library}")
    return module
