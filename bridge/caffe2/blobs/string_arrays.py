# SPDX-License-Identifier: Apache-2.0
"""Strings between NumPy and Caffe2: elements are `bytes`, text is encoded as UTF-8."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.annotation import Array
from bridge.caffe2.base.names import shortened
from bridge.caffe2.blobs.string_items import fixed_width_elements, plain_elements

# The kinds of NumPy dtypes for strings: objects, bytes, text, variable-width text.
STRING_KINDS = "OSUT"


class Strings:
    """Strings that an operator's function takes or returns: their sizes, and a list of bytes."""

    __slots__ = ("items", "shape")

    def __init__(self, shape: Sequence[int], items: list[bytes]) -> None:
        self.shape = shape
        self.items = items

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)


def as_bytes(value: str | bytes) -> bytes:
    """Return a string as plain bytes, text encoded as UTF-8.

    Raises UnicodeEncodeError: text with a lone surrogate, which UTF-8 cannot encode.
    """
    if isinstance(value, str):
        return str.encode(value)
    return value if type(value) is bytes else bytes(value)


def encoded_elements(array: Array) -> list[bytes]:
    """Return the elements of an array of strings as a list, in row-major order.

    An object array may have both `bytes` and `str`. NumPy's fixed-width types drop trailing NULs;
    elements that end in NUL need an object array.

    Raises TypeError: an element is something else. UnicodeEncodeError: text with a lone surrogate.
    """
    import numpy as np

    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind in "SU" and flat.dtype.isnative:
        return fixed_width_elements(flat)
    flat = flat.astype(object, copy=False)
    plain = plain_elements(flat)
    if plain is not None:
        return plain
    for index, item in enumerate(flat):
        if not isinstance(item, (bytes, str)):
            raise TypeError(
                f"element {index} of the array, {shortened(item)}, is of type "
                f"{type(item).__name__}; the elements of an array of dtype {array.dtype} must be "
                "bytes or str"
            )
    return [as_bytes(item) for item in flat]
