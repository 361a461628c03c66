# SPDX-License-Identifier: Apache-2.0
"""Struct and List: the fields of a record that hold others.

Follows caffe2/python/schema.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np

from bridge.annotation import Any
from bridge.c10.errors import (
    EnforceAssertionError,
    EnforceKeyError,
    EnforceTypeError,
    EnforceValueError,
)
from bridge.caffe2.schema.field import FIELD_SEPARATOR, Field, Scalar, normalized


def _indented(name: str, field: Field) -> list[str]:
    """Return the lines that show a field and its name inside another."""
    return [f"  {name}=", *(f"    {line}" for line in field._lines())]


class List(Field):
    """Lists of different lengths: their lengths, and the entries of all lists together.

    values: the field of the entries. lengths_blob: the value of the field `lengths`, int32, or
    that field.

    >>> import numpy as np
    >>> from bridge.caffe2 import schema
    >>> ids = schema.List(np.int64)
    >>> ids.field_names(), ids["values"] == ids.items
    (['lengths', 'values'], True)
    """

    __slots__ = ("_items", "lengths")

    def __init__(self, values: Any, lengths_blob: Any = None) -> None:
        self.lengths = _scalar(lengths_blob, np.int32, "lengths_blob")
        self._items = normalized(values)
        super().__init__([child for _, child in self._named_fields()])

    def _named_fields(self) -> list[tuple[str, Field]]:
        return [("lengths", self.lengths), ("values", self._items)]

    def clone(self, keep_blobs: bool = True) -> List:
        """Return a copy, without the values unless `keep_blobs`."""
        lengths = self.lengths.clone(keep_blobs)
        return type(self)(self._items.clone(keep_blobs), lengths)

    def _lines(self) -> list[str]:
        shown = [
            line
            for name, child in self._named_fields()
            for line in _indented("_items" if name == "values" else name, child)
        ]
        return [f"{self._kind}(", *shown, ")"]

    @property
    def _kind(self) -> str:
        return "List"

    def __getattr__(self, item: str) -> Any:
        """Return a field of the entries, if they are a Struct, or the entries: value or items."""
        if not item.startswith("_"):
            entries = self._items
            if isinstance(entries, Struct):
                return getattr(entries, item)
            if item in ("value", "items"):
                return entries
        raise AttributeError(f"Field not found in list: {item}.")

    def __getitem__(self, item: str) -> Any:
        """Return a field by its name, nested ones too: ``record["values:a"]``."""
        first, _, rest = item.partition(FIELD_SEPARATOR)
        found = dict(self._named_fields()).get(first)
        if found is not None and not rest:
            return found
        if found is None or first != "values":
            raise EnforceKeyError(f"Field not found in list: {item}.", f"{self._kind}.__getitem__")
        return self._items[rest]


class ListWithEvicted(List):
    """A List with a further field, `_evicted_values`, int64: values dropped by a hash table."""

    __slots__ = ("_evicted_values",)

    def __init__(self, values: Any, lengths_blob: Any = None, evicted_values: Any = None) -> None:
        self._evicted_values = _scalar(evicted_values, np.int64, "evicted_values")
        super().__init__(values, lengths_blob)

    def _named_fields(self) -> list[tuple[str, Field]]:
        return [*super()._named_fields(), ("_evicted_values", self._evicted_values)]

    def clone(self, keep_blobs: bool = True) -> ListWithEvicted:
        """Return a copy, without the values unless `keep_blobs`."""
        return type(self)(
            self._items.clone(keep_blobs),
            self.lengths.clone(keep_blobs),
            self._evicted_values.clone(keep_blobs),
        )

    @property
    def _kind(self) -> str:
        return "ListWithEvicted"


class Struct(Field):
    """Fields by name, in order. The names are attributes, and keys.

    fields: pairs of a name and a field, a type or a value. A name with ``:`` names a field of
    an inner Struct; Structs of one name are merged.

    Raises EnforceNotMet: two fields of one name that are not both Structs (also a ValueError); an
    empty name, or `lengths`, which belongs to a List (also an AssertionError).

    >>> import numpy as np
    >>> from bridge.caffe2 import schema
    >>> record = schema.Struct(("a", np.int32), ("b:c", np.float32), ("b:d", str))
    >>> record.field_names(), record.b.c == record["b:c"]
    (['a', 'b:c', 'b:d'], True)
    >>> (record - schema.Struct(("b:d", str)) + schema.Struct(("e", str))).field_names()
    ['a', 'b:c', 'e']
    """

    __slots__ = ("fields",)

    fields: dict[str, Any]

    def __init__(self, *fields: tuple[str, Any]) -> None:
        found: dict[str, Any] = {}
        for name, field in fields:
            if not name or name == "lengths":
                raise EnforceAssertionError(
                    "Struct cannot contain a field named `lengths`."
                    if name
                    else "Field names cannot be empty",
                    "Struct",
                )
            first, _, rest = name.partition(FIELD_SEPARATOR)
            added = Struct((rest, field)) if rest else normalized(field)
            if first in found:
                if not (isinstance(added, Struct) and isinstance(found[first], Struct)):
                    raise EnforceValueError(f"Duplicate field name: {first}", "Struct")
                added = found[first] + added
            found[first] = added
        self.fields = found
        super().__init__(found.values())

    def _named_fields(self) -> list[tuple[str, Field]]:
        return list(self.fields.items())

    def get_children(self) -> list[tuple[str, Any]]:
        """Return the fields with their names."""
        return list(self.fields.items())

    def clone(self, keep_blobs: bool = True) -> Struct:
        """Return a copy, without the values unless `keep_blobs`."""
        return type(self)(*[(name, one.clone(keep_blobs)) for name, one in self.fields.items()])

    def get(self, item: str, default_value: Any) -> Any:
        """Return the field of that name, or `default_value`."""
        return getattr(self, item, default_value)

    def _find(self, name: str) -> Any:
        first, _, rest = name.partition(FIELD_SEPARATOR)
        found = self.fields.get(first)
        if found is None or not rest:
            return found
        try:
            return found[rest]
        except (KeyError, TypeError):  # there is none, or a Scalar has no fields
            return None

    def __contains__(self, item: str) -> bool:
        return self._find(item) is not None

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, item: Any) -> Any:
        """Return a field by its name or number, or a Struct of several.

        Raises EnforceNotMet, also a KeyError: there is no field of that name. IndexError, by which
        iteration ends: of that number.
        """
        if isinstance(item, (list, tuple)):
            names = list(self.fields)
            return Struct(*[(names[k] if isinstance(k, int) else k, self[k]) for k in item])
        if isinstance(item, int):
            try:
                return next(islice(self.fields.values(), item, None))
            except StopIteration:
                raise IndexError(f"There are {len(self)} fields, counted from 0.") from None
        found = self._find(item)
        if found is None:
            raise EnforceKeyError(f'field "{item}" not found', "Struct.__getitem__")
        return found

    def __getattr__(self, item: str) -> Any:
        if item != "fields" and not item.startswith("__") and item in self.fields:
            return self.fields[item]
        raise AttributeError(item)

    def __setattr__(self, key: str, value: Any) -> None:
        """Set an attribute of the class's own. Raises EnforceNotMet, also a TypeError: a field."""
        if not key.startswith("_") and hasattr(self, "fields"):
            raise EnforceTypeError(
                "Struct.__setattr__() is disabled after __init__()", "Struct.__setattr__"
            )
        super().__setattr__(key, value)

    def __add__(self, other: Any) -> Struct:
        """Return a Struct of the fields of both; Structs of one name are merged."""
        if not isinstance(other, Struct):
            return NotImplemented
        return self._merged(other, _joined)

    def __sub__(self, other: Any) -> Struct:
        """Return a Struct without the fields of the other; inner Structs field by field."""
        if not isinstance(other, Struct):
            return NotImplemented
        common = {name: one for name, one in other.fields.items() if name in self.fields}
        return self._merged(Struct(*common.items()), _without)

    def _merged(self, other: Struct, merge: Callable[[Any, Any], Any]) -> Struct:
        """Return the fields of both.

        merge: returns the field for two of one name, False for none, None if they do not match.
        """
        fields: dict[str, Any] = dict(self.fields)
        for name, right in other.fields.items():
            left = fields.get(name)
            merged = right if left is None else merge(left, right)
            if merged is None:
                raise EnforceTypeError(
                    f"The fields {name!r} are a {type(left).__name__} and a "
                    f"{type(right).__name__}; only two Structs can be merged, and two fields of "
                    "one kind be subtracted.",
                    "Struct",
                )
            fields[name] = merged
        return Struct(*[(name, one) for name, one in fields.items() if one is not False])

    def _lines(self) -> list[str]:
        shown = [line for name, one in self.fields.items() for line in _indented(name, one)]
        return ["Struct( ", *shown, ") "]


def _joined(left: Any, right: Any) -> Any:
    return left + right if isinstance(left, Struct) and isinstance(right, Struct) else None


def _without(left: Any, right: Any) -> Any:
    """Return the rest of a field after another is subtracted; False if nothing is left."""
    if type(left) is not type(right):
        return None
    rest = left - right if isinstance(left, Struct) else ()
    return rest if len(rest) else False


def _scalar(value: Any, dtype: Any, name: str) -> Scalar:
    if not isinstance(value, Field):
        return Scalar(dtype, value)
    if not isinstance(value, Scalar):
        raise EnforceAssertionError(f"{name} must be a Scalar, not {type(value).__name__}.", "List")
    return value.clone()


def Map(
    keys: Any,
    values: Any,
    keys_name: str = "keys",
    values_name: str = "values",
    lengths_blob: Any = None,
) -> List:
    """Return a List of Structs of a key and a value."""
    return List(Struct((keys_name, keys), (values_name, values)), lengths_blob)


def MapWithEvicted(
    keys: Any,
    values: Any,
    keys_name: str = "keys",
    values_name: str = "values",
    lengths_blob: Any = None,
    evicted_values: Any = None,
) -> ListWithEvicted:
    """Return a ListWithEvicted of Structs of a key and a value."""
    return ListWithEvicted(
        Struct((keys_name, keys), (values_name, values)), lengths_blob, evicted_values
    )


def NamedTuple(name_prefix: str, *fields: Any) -> Struct:
    """Return a Struct of the fields `<name_prefix>_0`, `<name_prefix>_1`, …"""
    return Struct(*[(f"{name_prefix}_{i}", field) for i, field in enumerate(fields)])


def Tuple(*fields: Any) -> Struct:
    """Return a Struct of the fields `field_0`, `field_1`, …"""
    return NamedTuple("field", *fields)


def RawTuple(num_fields: int, name_prefix: str = "field") -> Struct:
    """Return a Struct of Scalars of unknown type."""
    return NamedTuple(name_prefix, *[np.void] * num_fields)
