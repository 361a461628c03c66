# SPDX-License-Identifier: Apache-2.0
"""From Python strings, in any nesting of lists, to a TensorImpl of type string."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.copy import require_copy
from bridge.c10.element_view import as_element
from bridge.c10.raw_parts import from_items
from bridge.c10.tensor_impl import TensorImpl
from bridge.c10.type_meta import TypeMeta


def import_strings(x: Any, copy: bool | None = None) -> TensorImpl:
    """Return a TensorImpl of the strings in `x`: text, ``bytes``, or nested lists of them.

    Text becomes UTF-8. An array is read by its ``tolist()``. One string has no dimensions.

    Raises BufferError: `copy` is False. ValueError: a ragged list, or one that contains itself.

    >>> from bridge.exchange.nested_strings import import_strings
    >>> impl = import_strings([["a", "b"], ["c", b"d"]])
    >>> impl.sizes(), impl.dtype().name
    (ArrayRef([2, 2]), 'string')
    """
    if hasattr(x, "tolist"):
        x = x.tolist()
    sizes: list[int] = []
    level: list[Any] = [x]
    if not isinstance(x, (str, bytes)):
        first_leaf(x)
        level = list(x)
        sizes.append(len(level))
        while level and isinstance(level[0], (list, tuple)):
            width = len(level[0])
            if any(not isinstance(row, (list, tuple)) or len(row) != width for row in level):
                raise ValueError("The list of strings is ragged.")
            sizes.append(width)
            level = [item for row in level for item in row]
    nbytes = sum(len(item) for item in level if isinstance(item, (str, bytes)))
    require_copy(copy, nbytes, "strings are copied into a tensor")
    string = TypeMeta.Make("string")
    return from_items(sizes, string, [as_element(item, string, "asarray") for item in level])


def first_leaf(x: Any) -> Any:
    """Return the first element of nested lists. Raises ValueError: a list contains itself."""
    seen: set[int] = set()
    while isinstance(x, (list, tuple)) and x:
        if id(x) in seen:
            raise ValueError("The list contains itself, so it has no sizes.")
        seen.add(id(x))
        x = x[0]
    return x
