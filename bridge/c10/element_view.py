# SPDX-License-Identifier: Apache-2.0
"""ElementView: the elements of a non-POD tensor as a mutable sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceIndexError, EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.c10.type_meta import TypeMeta


def as_element(value: Any, dtype: TypeMeta, caller: str = "Tensor.mutable_data") -> Any:
    """Return `value` as an element of `dtype`; a ``str`` for type string is encoded as UTF-8.

    Raises EnforceNotMet, also a TypeError: it is not such an element. EnforceNotMet, also a
    ValueError: the text cannot be encoded as UTF-8.
    """
    if dtype.name == "string":
        if type(value) is bytes:
            return value
        if isinstance(value, str):
            try:
                return value.encode()
            except UnicodeEncodeError as error:
                raise EnforceValueError(
                    f"The text cannot be encoded as UTF-8: {error}. Give bytes.",
                    "Tensor.mutable_data",
                ) from error
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
    elif dtype.element_class is not None and isinstance(value, dtype.element_class):
        return value
    raise EnforceTypeError(
        f"{type(value).__name__} is not an element of a tensor of {dtype}.", caller
    )


class ElementView(MutableSequence["Any"]):
    """The `n` elements of a list from an offset on; shares the list and keeps it alive.

    The length is fixed: elements can be replaced, not inserted or deleted.
    """

    __slots__ = ("_dtype", "_items", "_n", "_offset")

    def __init__(self, items: list[Any], dtype: TypeMeta, offset: int, n: int) -> None:
        self._items = items
        self._dtype = dtype
        self._offset = offset
        self._n = n

    def __len__(self) -> int:
        return self._n

    def _place(self, index: Any) -> int:
        try:
            i: int = index.__index__()
        except (AttributeError, TypeError) as error:
            raise EnforceTypeError(
                f"An index is an int or a slice, not {type(index).__name__}.", "Tensor.data"
            ) from error
        if i < 0:
            i += self._n
        if not 0 <= i < self._n:
            raise EnforceIndexError(
                f"Element {index} is out of range for {self._n} elements.", "Tensor.data"
            )
        return self._offset + i

    def _range(self, key: slice) -> range:
        return range(self._offset, self._offset + self._n)[key]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            places = self._range(index)
            if places.step == 1:
                return self._items[places.start : places.stop]
            return [self._items[i] for i in places]
        return self._items[self._place(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            places = self._range(index)
            try:
                values = list(value)
            except TypeError as error:
                raise EnforceTypeError(
                    f"A slice is set to a sequence of elements, not to {type(value).__name__}.",
                    "Tensor.mutable_data",
                ) from error
            # Strings are many and mostly bytes already, which `map` and `set` find out in C.
            if self._dtype.name != "string" or not set(map(type, values)) <= {bytes}:
                values = [as_element(one, self._dtype) for one in values]
            if len(values) != len(places):
                raise EnforceNotMet(
                    f"{len(values)} elements cannot replace {len(places)}; their number is "
                    "fixed. Use Resize or Extend.",
                    "Tensor.mutable_data",
                    condition="len(values) == len(slice)",
                )
            if places.step == 1:
                self._items[places.start : places.start + len(places)] = values
                return
            for i, one in zip(places, values, strict=True):
                self._items[i] = one
            return
        self._items[self._place(index)] = as_element(value, self._dtype)

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __delitem__(self, index: Any) -> None:
        raise EnforceTypeError(
            "Elements cannot be deleted: their number is fixed. Use ShrinkTo or Resize.",
            "Tensor.mutable_data",
        )

    def insert(self, index: int, value: Any) -> None:
        """Raise EnforceTypeError: the number of elements is fixed. Use Extend."""
        raise EnforceTypeError(
            "Elements cannot be inserted: their number is fixed. Use Extend or Resize.",
            "Tensor.mutable_data",
        )

    def replace(self, values: Iterable[Any]) -> None:
        """Replace all elements by `values`, which must be as many."""
        self[:] = values

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (ElementView, list, tuple)):
            return list(self) == list(other)
        return NotImplemented

    def __repr__(self) -> str:
        return f"ElementView({list(self)!r})"
