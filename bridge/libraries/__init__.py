# SPDX-License-Identifier: Apache-2.0
"""The libraries that the bridge knows by name: a module each, loaded when it is first needed.

A module is named after the package whose classes it imports and exports, and calls
``registry.register`` for it, as users call `bridge.register`. So a library is added by writing one
file. It is loaded when ``convert(x, name)`` or an object of a class of that package is first met.

Most modules register an ``importer(x)``, which returns something that another door takes (or `x`
itself, for the protocols that it has), and an ``exporter(at_tensor)``. Whether these share the
memory is found out by comparing addresses. The modules of libraries that need to know whether a
copy is allowed say so; see `registry`.
"""

from __future__ import annotations

from bridge.exchange.registry import add_folder

__all__ = ["IMPORT_ONLY"]

# These only import: `convert` has no such names.
IMPORT_ONLY = frozenset({"dask", "jaxlib", "keras", "onnx", "taichi", "xarray"})

add_folder(__name__, __path__, IMPORT_ONLY)
