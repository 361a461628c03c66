# SPDX-License-Identifier: Apache-2.0
"""Records from columns, from values and for nets.

Follows caffe2/python/schema.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceTypeError, EnforceValueError
from bridge.caffe2.base.data_types import ELEMENT_TYPES, NUMBERS, DataType
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.schema.containers import List, Map, Struct, Tuple
from bridge.caffe2.schema.field import FIELD_SEPARATOR, Field, Metadata, Scalar, normalized

_log = logging.getLogger(__name__)


def from_dtype(dtype: Any, _outer_shape: tuple[int, ...] = ()) -> Field:
    """Return a Scalar of a type of NumPy; a Struct of a structured one.

    >>> import numpy as np
    >>> from bridge.caffe2 import schema
    >>> schema.from_dtype(np.dtype([("a", np.int32), ("b", np.float32, (2,))])).field_names()
    ['a', 'b']
    """
    whole = np.dtype(dtype)
    base, shape = whole.base, _outer_shape + whole.shape
    if base.names is None:
        return Scalar((base, shape) if shape else base)
    return Struct(*[(name, from_dtype(base[name], shape)) for name in base.names])


def from_column_list(
    col_names: Sequence[str],
    col_types: Sequence[Any] | None = None,
    col_blobs: Sequence[Any] | None = None,
    col_metadata: Sequence[Metadata | None] | None = None,
) -> Any:
    """Return the record with these names of leaves, as `Field.field_names` returns them.

    A field of `lengths` and `values` is a List; of `lengths`, `keys` and `values` a Map. The others
    are Structs. The order of the columns does not matter for Lists.

    Raises EnforceNotMet: sequences of different lengths (also an AssertionError), or a column that
    is also the name of others (also a ValueError).

    >>> from bridge.caffe2 import schema
    >>> record = schema.from_column_list(["a:values", "b", "a:lengths"])
    >>> record.field_names(), type(record.a).__name__
    (['a:lengths', 'a:values', 'b'], 'List')
    """
    columns = {"col_types": col_types, "col_blobs": col_blobs, "col_metadata": col_metadata}
    filled = []
    for what, values in columns.items():
        if values is not None and len(values) != len(col_names):
            raise EnforceAssertionError(
                f"col_names and {what} must have the same length.", "from_column_list"
            )
        filled.append([None] * len(col_names) if values is None else values)
    leaves = [Scalar(*column) for column in zip(*filled, strict=True)]
    paths = [name.split(FIELD_SEPARATOR) for name in col_names]
    return _field_of(list(zip(paths, leaves, strict=True)))


def _field_of(columns: list[tuple[list[str], Scalar]]) -> Field:
    """Return the field of leaves, each of which has the path of its names."""
    if len(columns) == 1 and not columns[0][0]:
        return columns[0][1]
    inner: dict[str, list[tuple[list[str], Scalar]]] = {}
    for path, leaf in columns:
        if not path:
            names = [FIELD_SEPARATOR.join(other) for other, _ in columns if other]
            raise EnforceValueError(
                f"Duplicate field name: a column has the name of others, of {names or 'another'}.",
                "from_column_list",
            )
        inner.setdefault(path[0], []).append((path[1:], leaf))
    fields = {name: _field_of(one) for name, one in inner.items()}
    if fields.keys() == {"lengths", "values"}:
        return List(fields["values"], fields["lengths"])
    if fields.keys() == {"lengths", "keys", "values"}:
        return Map(fields["keys"], fields["values"], lengths_blob=fields["lengths"])
    return Struct(*fields.items())


def from_blob_list(schema: Field, values: Any, throw_on_type_mismatch: bool = False) -> Any:
    """Return a copy of a record with other values, one for each leaf.

    throw_on_type_mismatch: see `Scalar.set_value`. Raises EnforceNotMet, also an AssertionError:
    `schema` is not a Field, or has another number of leaves.
    """
    caller = "from_blob_list"
    if not isinstance(schema, Field):
        raise EnforceAssertionError("Argument `schema` must be a Field.", caller)
    record = schema.clone_schema()
    leaves = record.all_scalars()
    leaf_values = [values] if isinstance(values, BlobReference) else list(values)
    if len(leaves) != len(leaf_values):
        raise EnforceAssertionError(
            f"Values must have {len(leaves)} elements, got {len(leaf_values)}.", caller
        )
    for leaf, value in zip(leaves, leaf_values, strict=True):
        leaf.set_value(value, throw_on_type_mismatch, unsafe=True)
    return record


def as_record(value: Any) -> Any:
    """Return a field unchanged; a Struct of a dict or of pairs; a Tuple of another list.

    Everything else is a type, or a value, of a Scalar.
    """
    if isinstance(value, Field):
        return value
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, (list, tuple)):
        return normalized(value)
    if all(isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) for one in pairs):
        return Struct(*[(name, as_record(one)) for name, one in pairs])
    return Tuple(*[as_record(one) for one in pairs])


def required_blobs(record: Any, caller: str) -> list[Any]:
    """Return the blobs of a record.

    Raises EnforceNotMet, also an AssertionError: not a Field, or a value is not a BlobReference.
    """
    blobs = record.field_blobs() if isinstance(record, Field) else [None]
    if not all(isinstance(one, BlobReference) for one in blobs):
        raise EnforceAssertionError("The record must be a Field whose values are blobs.", caller)
    return blobs


def NewRecord(net: Any, schema: Field) -> Any:
    """Return a copy of a record with new blobs, which are named after the fields.

    The names are new in `net`, and in the current name scope.
    """
    if isinstance(schema, Scalar):
        return from_blob_list(schema, [net.NextScopedBlob("unnamed_scalar")])
    if not isinstance(schema, Field):
        raise EnforceAssertionError("Record must be a schema.Field instance.", "NewRecord")
    names = schema.field_names()
    return from_blob_list(schema, [net.NextScopedBlob(prefix=name) for name in names])


def ConstRecord(net: Any, array_record: Field) -> Any:
    """Return a copy of a record of arrays with new blobs, which `net` sets to the arrays."""
    record = NewRecord(net, array_record)
    for blob, array in zip(record.field_blobs(), array_record.field_blobs(), strict=True):
        net.Const(array, blob)
    return record


def InitEmptyRecord(net: Any, schema_or_record: Field, enforce_types: bool = False) -> Any:
    """Return a record of blobs, new ones unless it has some; `net` makes them empty.

    A blob of unknown type is float32 and 1-D; with enforce_types it raises EnforceNotMet, also a
    TypeError.
    """
    record: Any = schema_or_record
    if not schema_or_record.has_blobs():
        record = NewRecord(net, schema_or_record)
    for dtype, blob in zip(record.field_types(), record.field_blobs(), strict=True):
        try:
            number = data_type_for_dtype(dtype)
        except TypeError:
            if enforce_types:
                raise
            _log.warning("Blob %s is of unknown type, %s: float32 is taken.", blob, dtype)
            net.ConstantFill([], blob, shape=[0])
        else:
            net.ConstantFill([], blob, shape=[0, *dtype.shape], dtype=number)
    return record


def is_schema_subset(schema: Field, original_schema: Field) -> bool:
    """Return whether all names of fields are among the other's."""
    return set(schema.field_names()) <= set(original_schema.field_names())


def equal_schemas(
    schema: Field,
    original_schema: Field,
    check_field_names: bool = True,
    check_field_types: bool = True,
    check_field_metas: bool = False,
) -> bool:
    """Return whether two records have the same names, types or metadata of leaves."""
    for one in (schema, original_schema):
        if not isinstance(one, Field):
            raise EnforceAssertionError(f"A Field is needed, not {one!r}.", "equal_schemas")
    a, b = schema, original_schema
    return (
        (not check_field_names or a.field_names() == b.field_names())
        and (not check_field_types or a.field_types() == b.field_types())
        and (not check_field_metas or a.field_metadata() == b.field_metadata())
    )


def schema_check(schema: Any, previous: Field | None = None) -> Any:
    """Return `as_record`; it must equal `previous`, if that is given.

    Raises EnforceNotMet, also an AssertionError: it does not.
    """
    record = as_record(schema)
    if previous is not None and not equal_schemas(record, previous):
        raise EnforceAssertionError(
            f"The fields are {record.field_names()}, and {previous.field_names()} before.",
            "schema_check",
        )
    return record


def data_type_for_dtype(dtype: np.dtype[Any]) -> int:
    """Return the number of ``core.DataType`` for a type of NumPy.

    Raises EnforceNotMet, also a TypeError: there is none.
    """
    base = np.dtype(dtype).base
    if base == np.dtype(str):
        return DataType.STRING
    for name, number in NUMBERS.items():
        if number != DataType.STRING and base == np.dtype(name):
            return number
    raise EnforceTypeError(f"Unknown dtype: {base}", "data_type_for_dtype")


def dtype_for_core_type(core_type: int) -> Any:
    """Return the type of NumPy for a number of ``core.DataType``; `str` for strings.

    Raises EnforceNotMet, also a TypeError: there is none.
    """
    meta = ELEMENT_TYPES.get(core_type)
    if meta is None:
        raise EnforceTypeError(f"Unknown core type: {core_type}", "dtype_for_core_type")
    return str if core_type == DataType.STRING else np.dtype(meta.name).type


def attach_metadata_to_scalars(field: Field, metadata: Metadata) -> None:
    """Set the metadata of all leaves of a field."""
    for leaf in field.all_scalars():
        leaf.set_metadata(metadata)
