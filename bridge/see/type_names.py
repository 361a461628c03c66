# SPDX-License-Identifier: Apache-2.0
"""The names that users know the classes of tensors by; imports no framework."""

from __future__ import annotations

from typing import Any

# Classes whose public name is not in the module that defines them.
_NAMES = {
    "jaxlib._jax.ArrayImpl": "jax.Array",
    "jaxlib.xla_extension.ArrayImpl": "jax.Array",
    "tensorflow.python.framework.ops.EagerTensor": "tf.Tensor",
    "builtins.PyCapsule": "DLPack capsule",
    "bridge.at.tensor.Tensor": "at.Tensor",
    "bridge.caffe2.tensor.tensor.Tensor": "caffe2.Tensor",
    "bridge.c10.tensor_impl.TensorImpl": "TensorImpl",
    "bridge.c10.storage.Storage": "Storage",
}
_PACKAGES = {"jaxlib": "jax", "tensorflow": "tf"}


def type_name(x: Any) -> str:
    """Return the public name of the type of `x`.

    >>> from bridge.see.type_names import type_name
    >>> from bridge import at
    >>> type_name(at.zeros(2)), type_name(b"")
    ('at.Tensor', 'bytes')
    """
    return class_name(type(x))


def class_name(cls: type) -> str:
    """Return the public name of a class of tensors."""
    module, name = cls.__module__ or "", cls.__qualname__
    known = _NAMES.get(f"{module}.{name}")
    if known is not None:
        return known
    package = module.partition(".")[0]
    return name if package == "builtins" else f"{_PACKAGES.get(package, package)}.{name}"
