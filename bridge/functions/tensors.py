# SPDX-License-Identifier: Apache-2.0
"""Which library a tensor is of. No library is imported for that."""

from __future__ import annotations

import sys
from weakref import WeakKeyDictionary

from bridge.annotation import Any
from bridge.at.tensor import Tensor
from bridge.c10.handle import Handle
from bridge.exchange.registry import adapter_of, on_change

# The library of a tensor that only its protocols tell about.
UNNAMED = "unnamed"
# The tensors of libraries whose other classes are not tensors.
_CLASSES = (
    ("torch", ("Tensor",)),
    ("numpy", ("ndarray",)),
    ("jax", ("Array",)),
    ("tensorflow", ("Tensor", "Variable")),
    ("paddle", ("Tensor",)),
    ("cupy", ("ndarray",)),
)
_PROTOCOLS = ("__dlpack__", "__array_interface__", "__cuda_array_interface__")
_known: WeakKeyDictionary[type, str] = WeakKeyDictionary()
on_change(_known.clear)


def library_of(x: Any) -> str:
    """Return the name of the library that `x` is a tensor of; "" if it is not a tensor.

    Numbers, strings, buffers and NumPy's scalars are not tensors.
    """
    cls = type(x)
    name = _known.get(cls)
    if name is None:
        name = _known[cls] = _found(cls, x)
    return name


def _found(cls: type, x: Any) -> str:
    if issubclass(cls, Handle):
        return "at" if issubclass(cls, Tensor) else "caffe2"
    for name, classes in _CLASSES:
        module = sys.modules.get(name)
        if any(isinstance(x, getattr(module, word, ())) for word in classes):
            return name
    if cls.__module__ == "builtins" or _is_scalar(cls):
        return ""
    adapter = adapter_of(cls)
    if adapter is not None and adapter.includes(x):
        return "" if adapter.name in dict(_CLASSES) else adapter.name
    return UNNAMED if any(hasattr(cls, word) for word in _PROTOCOLS) else ""


def _is_scalar(cls: type) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(cls, numpy.generic)
