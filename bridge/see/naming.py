# SPDX-License-Identifier: Apache-2.0
"""What tensors are called, and how many bytes they have; imports no framework."""

from __future__ import annotations

from bridge.c10.tensor_impl import TensorImpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["kind_of", "nbytes_of"]

# Classes that go by another name than that of their module.
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
_ROOTS = {"jaxlib": "jax", "tensorflow": "tf"}


def kind_of(x: Any) -> str:
    """Name the type of `x` as its users do.

    >>> from bridge.see.naming import kind_of
    >>> from bridge import at
    >>> kind_of(at.zeros(2)), kind_of(b"")
    ('at.Tensor', 'bytes')
    """
    cls = type(x)
    module, name = cls.__module__ or "", cls.__qualname__
    known = _NAMES.get(f"{module}.{name}")
    if known is not None:
        return known
    root = module.partition(".")[0]
    return name if root == "builtins" else f"{_ROOTS.get(root, root)}.{name}"


def nbytes_of(x: Any) -> int | None:
    """Count the bytes that the elements of `x` take; None where `x` does not say.

    >>> from bridge.see.naming import nbytes_of
    >>> from bridge import at
    >>> nbytes_of(at.zeros(2, 3)), nbytes_of(bytearray(5)), nbytes_of("text")
    (24, 5, None)
    """
    if isinstance(x, TensorImpl):
        return int(x.numel()) * int(x.dtype().itemsize) if x.defined() else 0
    if isinstance(x, (bytes, bytearray)):
        return len(x)
    try:
        nbytes = getattr(x, "nbytes", None)
        if callable(nbytes):
            nbytes = nbytes()
        if nbytes is None:
            # TensorFlow's tensors count elements only
            nbytes = int(x.shape.num_elements()) * int(x.dtype.size)
        return int(nbytes)
    except (AttributeError, TypeError, ValueError, RuntimeError, NotImplementedError):
        return None
