# SPDX-License-Identifier: Apache-2.0
"""TensorShape: a shape in which sizes, or the rank, may be unknown."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.tf.shape_proto import TensorShapeProto, known_dims, message_bytes, read_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

_Dims: TypeAlias = "tuple[int | None, ...] | None"


class TensorShape:
    """A shape of TensorFlow: each size is an int, or None if unknown.

    `dims` is a sequence of sizes, a single size, None for an unknown rank, another TensorShape
    (TensorFlow's too), or a TensorShapeProto as a message or as its bytes. Immutable. It compares
    equal to anything from which an equal TensorShape can be constructed.

    Raises EnforceNotMet, also a TypeError: `dims` is none of these. Also a ValueError: a size is
    negative.

    Follows tf.TensorShape, tensorflow/python/framework/tensor_shape.py, TensorFlow 2.21, whose
    sizes are plain ints.

    >>> from bridge import tf
    >>> shape = tf.TensorShape([2, None, 3])
    >>> shape, shape.rank, shape.dims, shape.num_elements()
    (TensorShape([2, None, 3]), 3, [2, None, 3], None)
    >>> shape.merge_with([2, 5, None]).num_elements()
    30
    >>> tf.TensorShape(shape.as_proto()) == shape
    True
    """

    __slots__ = ("_dims",)

    _dims: _Dims

    def __init__(self, dims: Any) -> None:
        self._dims = _dims_of(dims)

    @property
    def dims(self) -> list[int | None] | None:
        """The sizes in a new list, None for each unknown one; None if the rank is unknown."""
        return None if self._dims is None else list(self._dims)

    @property
    def rank(self) -> int | None:
        """The number of dimensions; None if unknown."""
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        """The number of dimensions; the same as `rank`."""
        return self.rank

    def num_elements(self) -> int | None:
        """Return the number of elements; None if a size or the rank is unknown."""
        if not self.is_fully_defined():
            return None
        return functools.reduce(operator.mul, self.as_list(), 1)

    def is_fully_defined(self) -> bool:
        """Return whether the rank and every size are known."""
        return self._dims is not None and None not in self._dims

    def as_list(self) -> list[Any]:
        """Return the sizes in a new list, None for each unknown one.

        Raises EnforceNotMet, also a ValueError: the rank is unknown.
        """
        return list(self._known("as_list"))

    def as_proto(self) -> TensorShapeProto:
        """Return the TensorShapeProto: ``bytes`` with the attributes of the message."""
        return TensorShapeProto.of(self._dims)

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether a fully known shape exists that matches both this one and `other`."""
        mine, theirs = self._dims, _shape(other)._dims
        if mine is None or theirs is None:
            return True
        return len(mine) == len(theirs) and all(
            a is None or b is None or a == b for a, b in zip(mine, theirs, strict=True)
        )

    def merge_with(self, other: Any) -> TensorShape:
        """Return the shape with every size that this one or `other` knows.

        Raises EnforceNotMet, also a ValueError: the two are not compatible.
        """
        other = _shape(other)
        if not self.is_compatible_with(other):
            raise EnforceValueError(
                f"The shapes {self} and {other} are not compatible.",
                "TensorShape.merge_with",
                condition="is_compatible_with(other)",
            )
        if self._dims is None or other._dims is None:
            return other if self._dims is None else self
        return TensorShape(
            [b if a is None else a for a, b in zip(self._dims, other._dims, strict=True)]
        )

    def concatenate(self, other: Any) -> TensorShape:
        """Return the dimensions of this shape followed by the dimensions of `other`.

        The rank is unknown if either is.
        """
        other = _shape(other)
        if self._dims is None or other._dims is None:
            return TensorShape(None)
        return TensorShape(self._dims + other._dims)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return _shape(other).concatenate(self)

    @overload
    def __getitem__(self, key: int) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...
    def __getitem__(self, key: int | slice) -> Any:
        """Return a size; for a slice, the TensorShape of those dimensions.

        If the rank is unknown, every size is None, and a slice has the length that its bounds
        imply, or an unknown rank if they imply none.
        """
        if self._dims is not None:
            return TensorShape(self._dims[key]) if isinstance(key, slice) else self._dims[key]
        if not isinstance(key, slice):
            return None
        if key.step is not None:
            raise EnforceValueError(
                "Steps are not possible in a slice of a shape of unknown rank.",
                "TensorShape",
                condition="step is None",
            )
        start, stop = key.start or 0, key.stop
        if stop is None or start < 0 or stop < 0:
            return TensorShape(None)
        return TensorShape([None] * (stop - start))

    def __len__(self) -> int:
        return len(self._known("len"))

    def __iter__(self) -> Iterator[int | None]:
        return iter(self._known("iter"))

    def __bool__(self) -> bool:
        return self._dims is not None

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == _shape(other)._dims
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self._dims,)

    def __repr__(self) -> str:
        return f"TensorShape({self.dims})"

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)

    def _known(self, caller: str) -> tuple[int | None, ...]:
        if self._dims is None:
            raise EnforceValueError(
                "The rank of the shape is unknown.",
                f"TensorShape.{caller}",
                condition="rank is not None",
            )
        return self._dims


def _shape(x: Any) -> TensorShape:
    return x if isinstance(x, TensorShape) else TensorShape(x)


def _dims_of(x: Any) -> _Dims:
    if x is None:
        return None
    if isinstance(x, TensorShape):
        return x._dims
    if hasattr(x, "as_proto"):  # TensorFlow's own
        x = x.as_proto()
    if hasattr(x, "SerializeToString") or isinstance(x, (bytes, bytearray, memoryview)):
        return known_dims(read_shape(message_bytes(x, "tf.TensorShape"), "tf.TensorShape"))
    try:
        sizes = iter(x)
    except TypeError:
        return (_size(x),)
    return tuple(map(_size, sizes))


def _size(x: Any) -> int | None:
    if x is None:
        return None
    # TensorFlow 1's Dimension has its int in `value`, or None.
    value = x.value if type(x).__name__ == "Dimension" else x
    if value is None:
        return None
    try:
        size = operator.index(value)
    except TypeError:
        raise EnforceTypeError(
            f"{x!r} of type {type(x).__name__} is not a size. A shape is a sequence of ints and "
            "None, one int, None, or a TensorShapeProto.",
            "tf.TensorShape",
        ) from None
    if size < 0:
        raise EnforceValueError(
            f"The size {size} is negative; use None for an unknown size.",
            "tf.TensorShape",
            condition="size >= 0",
        )
    return size
