# SPDX-License-Identifier: Apache-2.0
"""The number of bytes of an object that a conversion returns; imports no framework."""

from __future__ import annotations

from bridge.c10.tensor_impl import TensorImpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def nbytes_of(x: Any) -> int | None:
    """Return the size of the elements of `x` in bytes; None if `x` does not report it.

    >>> from bridge.see.nbytes import nbytes_of
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
            # TensorFlow's tensors report the number of elements only
            nbytes = int(x.shape.num_elements()) * int(x.dtype.size)
        return int(nbytes)
    except (AttributeError, TypeError, ValueError, RuntimeError, NotImplementedError):
        return None
