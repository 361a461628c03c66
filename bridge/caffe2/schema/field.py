# SPDX-License-Identifier: Apache-2.0
"""Field and Scalar: the parts of a record, which describes data in columns.

A record is a tree. Its leaves, the Scalars, have a type and stand for one tensor each; `Struct` and
`List`, in `containers`, hold further fields. A Scalar may hold a value: an array, or the
BlobReference of a blob. Follows caffe2/python/schema.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import logging
from collections import namedtuple
from collections.abc import Iterable

import numpy as np

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceTypeError, EnforceValueError
from bridge.caffe2.definitions.blob_reference import BlobReference

FIELD_SEPARATOR = ":"
"""Stands between the names of nested fields."""

_log = logging.getLogger(__name__)

FeatureSpec = namedtuple(
    "FeatureSpec",
    "feature_type feature_names feature_ids feature_is_request_only desired_hash_size "
    "feature_to_index",
    defaults=[None, None, None, None, None, None],
)


class Metadata(
    namedtuple(
        "Metadata", "categorical_limit expected_value feature_specs", defaults=[None, None, None]
    )
):
    """Further facts of a Scalar.

    categorical_limit: one more than the largest value, for integers. expected_value: the mean, for
    lengths of lists. feature_specs: a FeatureSpec.
    """

    __slots__ = ()


class Field:
    """The base class of the fields of a record; its children are in order.

    >>> from bridge.caffe2 import schema
    >>> record = schema.Struct(("a", schema.Scalar()), ("b", schema.List(schema.Scalar())))
    >>> record.field_names()
    ['a', 'b:lengths', 'b:values']
    >>> record.b.slice()
    slice(1, 3, None)
    """

    __slots__ = ("_field_offsets", "_parent")

    def __init__(self, children: Iterable[Field]) -> None:
        self._parent: tuple[Field | None, int] = (None, 0)
        self._field_offsets = [0]
        for i, child in enumerate(children):
            self._field_offsets.append(self._field_offsets[-1] + len(child.all_scalars()))
            child._set_parent(self, i)

    def _named_fields(self) -> list[tuple[str, Field]]:
        """Return the children with their names."""
        raise NotImplementedError("Field is abstract; Scalar, List and Struct have children.")

    def all_scalars(self) -> list[Scalar]:
        """Return the leaves, in the order of `field_names`."""
        return [leaf for _, child in self._named_fields() for leaf in child.all_scalars()]

    def field_names(self) -> list[str]:
        """Return the names of the leaves, with ``:`` between the names of nested fields."""
        return [
            f"{name}{FIELD_SEPARATOR}{inner}" if name and inner else name or inner
            for name, child in self._named_fields()
            for inner in child.field_names()
        ]

    def field_types(self) -> list[np.dtype[Any]]:
        """Return the types of the leaves."""
        return [leaf.dtype for leaf in self.all_scalars()]

    def field_metadata(self) -> list[Metadata | None]:
        """Return the Metadata of the leaves, None for one without."""
        return [leaf.metadata for leaf in self.all_scalars()]

    def field_blobs(self) -> list[Any]:
        """Return the values of the leaves, arrays or BlobReferences.

        Raises EnforceNotMet, also an AssertionError: a leaf has no value.
        """
        return [leaf.get() for leaf in self.all_scalars()]

    def has_blobs(self) -> bool:
        """Return whether all leaves have values."""
        return all(leaf._blob is not None for leaf in self.all_scalars())

    def clone(self, keep_blobs: bool = True) -> Any:
        """Return a copy of the tree, without its values unless `keep_blobs`."""
        raise NotImplementedError("Field is abstract; Scalar, List and Struct can be cloned.")

    def clone_schema(self) -> Any:
        """Return a copy of the tree without its values."""
        return self.clone(keep_blobs=False)

    def slice(self) -> slice:
        """Return the range of this field's leaves among all leaves of the record."""
        start = self._child_base_id()
        return slice(start, start + len(self.all_scalars()))

    def _set_parent(self, parent: Field, relative_id: int) -> None:
        self._parent = (parent, relative_id)

    def _child_base_id(self, child_index: int | None = None) -> int:
        """Return the number of the first leaf of a child, or of this field, in the record."""
        parent, place = self._parent
        start = 0 if parent is None else parent._child_base_id(place)
        return start + (0 if child_index is None else self._field_offsets[child_index])

    def __eq__(self, other: object) -> bool:
        """Return whether names, types and metadata are the same; values do not count."""
        return (
            isinstance(other, Field)
            and self.field_names() == other.field_names()
            and self.field_types() == other.field_types()
            and self.field_metadata() == other.field_metadata()
        )

    __hash__ = None  # type: ignore[assignment]  # as of everything that is compared by value

    def _lines(self) -> list[str]:
        """Return the lines that show the field."""
        raise NotImplementedError("Field is abstract; Scalar, List and Struct can be shown.")

    def __repr__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())


class Scalar(Field):
    """A leaf of a record: a type, and a value if it has one.

    dtype: a type of NumPy, or one with the sizes of each entry, as ``(np.float32, (2, 3))``; None
    is an unknown type, `np.void`. blob: a BlobReference, or an array, or values that NumPy converts
    to one of the type. metadata: a `Metadata`.

    >>> import numpy as np
    >>> from bridge.caffe2 import schema
    >>> column = schema.Scalar((np.float32, 2), blob=np.ones((3, 2), np.float32))
    >>> column.field_type().shape, column().shape
    ((2,), (3, 2))
    """

    __slots__ = ("_blob", "_metadata", "_original_dtype", "dtype")

    def __init__(self, dtype: Any = None, blob: Any = None, metadata: Any = None) -> None:
        self._metadata: Any = None
        self.set(dtype, blob, metadata, unsafe=True)
        super().__init__([])

    def _named_fields(self) -> list[tuple[str, Field]]:
        return []

    def all_scalars(self) -> list[Scalar]:
        """Return this field alone."""
        return [self]

    def field_names(self) -> list[str]:
        """Return one empty name."""
        return [""]

    def field_type(self) -> np.dtype[Any]:
        """Return the type."""
        return self.dtype

    def clone(self, keep_blobs: bool = True) -> Scalar:
        """Return a copy, without the value unless `keep_blobs`."""
        return Scalar(self._original_dtype, self._blob if keep_blobs else None, self._metadata)

    def get(self) -> Any:
        """Return the value. Raises EnforceNotMet, also an AssertionError: there is none."""
        if self._blob is None:
            raise EnforceAssertionError("Value is not set for this field.", "Scalar.get")
        return self._blob

    __call__ = get

    @property
    def metadata(self) -> Any:
        """The `Metadata`, or None."""
        return self._metadata

    def set_metadata(self, value: Metadata) -> None:
        """Set the `Metadata`.

        Raises EnforceNotMet, also an AssertionError: not a Metadata, or a `categorical_limit` for
        a type that is not an integer.
        """
        if not isinstance(value, Metadata):
            raise EnforceAssertionError(
                f"metadata must be Metadata, got {type(value)}", "Scalar.set_metadata"
            )
        _check_limit(value, self.dtype)
        self._metadata = value

    def set_value(
        self, blob: Any, throw_on_type_mismatch: bool = False, unsafe: bool = False
    ) -> None:
        """Set the value, and keep the type.

        With throw_on_type_mismatch it raises EnforceNotMet, also an AssertionError, for a value
        other than an array of the type, unless that is unknown.
        """
        known = self.dtype.base
        if throw_on_type_mismatch and known != np.void:
            given = blob.dtype.base if isinstance(blob, np.ndarray) else repr(blob)
            if given != known:
                raise EnforceAssertionError(f"Expected {known}, got {given}", "Scalar.set_value")
        self.set(self._original_dtype, blob, unsafe=unsafe)

    def set(
        self, dtype: Any = None, blob: Any = None, metadata: Any = None, unsafe: bool = False
    ) -> None:
        """Set type and value, and the metadata if given; see `Scalar`.

        Other fields may refer to this one, so it warns unless `unsafe`.

        Raises EnforceNotMet: the value is a string, which may be a name or data (also a
        ValueError); sizes of an unknown type (also a TypeError); a structured type, or a value of
        unknown type that is not an array (also an AssertionError).
        """
        if not unsafe:
            _log.warning("Scalar.set(...) changes a field that others may share; make a new one.")
        caller = "Scalar.set"
        if isinstance(blob, str):
            raise EnforceValueError(
                "Passing str blob to Scalar.set() is ambiguous. Do either "
                "set(blob=np.array(blob)) or set(blob=BlobReference(blob))",
                caller,
            )
        known = None if dtype is None else _dtype_of(dtype, caller)
        if blob is not None and not isinstance(blob, BlobReference):
            blob = _array(blob, known, caller)
            if blob.ndim > 1 and known is not None and known.base != np.void:
                known = np.dtype((known.base, blob.shape[1:]))
        known = np.dtype(np.void) if known is None else known
        if known.fields:
            raise EnforceAssertionError(
                "Cannot create Scalar with a structured dtype. Use from_dtype instead.", caller
            )
        if metadata is None:
            _check_limit(self._metadata, known)
        self.dtype, self._blob, self._original_dtype = known, blob, dtype
        if metadata is not None:
            self.set_metadata(metadata)

    def set_type(self, dtype: Any) -> None:
        """Set the type, and keep the value."""
        known = np.dtype(np.void if dtype is None else dtype)
        _check_limit(self._metadata, known)
        self.dtype, self._original_dtype = known, dtype

    def id(self) -> int:
        """Return the place of this leaf among all leaves of the record."""
        return self._child_base_id()

    def _lines(self) -> list[str]:
        return [f"Scalar({self.dtype!r}, {self._blob!r}, {self._metadata!r})"]


def normalized(field: Any, keep_blobs: bool = True) -> Any:
    """Return a copy of a field; a Scalar of a type or of a value."""
    if isinstance(field, Field):
        return field.clone(keep_blobs=keep_blobs)
    if type(field) in (type, np.dtype) or isinstance(field, np.dtype):
        return Scalar(dtype=field)
    return Scalar(blob=field)


def _dtype_of(dtype: Any, caller: str) -> np.dtype[Any]:
    if isinstance(dtype, tuple):
        base, sizes = dtype
        if base == np.void:
            raise EnforceTypeError(
                f"A field of unknown type has no sizes, and {dtype} gives it some. If it is the "
                "output of an operator, look at the types of that operator's inputs.",
                caller,
            )
        if sizes == 1:  # which NumPy takes for no sizes
            return np.dtype((base, (1,)))
    known: np.dtype[Any] = np.dtype(dtype)
    return known


def _array(blob: Any, dtype: np.dtype[Any] | None, caller: str) -> np.ndarray[Any, Any]:
    """Return a value as an array; entries of values that were no arrays have a dimension."""
    is_array = isinstance(blob, np.ndarray)
    if dtype is not None and dtype != np.void:
        array = np.array(blob, dtype=dtype.base)
        if array.size == 0 and not is_array:
            array = array.reshape((0, *dtype.shape))
    elif is_array:
        array = blob
    else:
        raise EnforceAssertionError(f"Invalid blob type: {type(blob)}", caller)
    return array if array.ndim or is_array else array.reshape(1)


def _check_limit(metadata: Any, dtype: np.dtype[Any]) -> None:
    limited = metadata is not None and metadata.categorical_limit is not None
    if limited and not np.issubdtype(dtype, np.integer):
        raise EnforceAssertionError(
            f"`categorical_limit` can be specified only in integral fields but got {dtype}",
            "Scalar",
        )
