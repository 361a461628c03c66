# SPDX-License-Identifier: Apache-2.0
"""Decode the values of a TensorProto: its `*_val` fields, and strings in its content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.at.factories import empty
from bridge.c10.raw_parts import from_items, items_of
from bridge.c10.type_meta import TypeMeta
from bridge.tf.element_types import STRING
from bridge.tf.errors import TensorProtoError
from bridge.tf.message import TensorMessage
from bridge.wire.field_encoding import length_head

if TYPE_CHECKING:
    from bridge.tf.element_types import Row

# A field of varints of 64 bits.
_INT64_VAL = 10


def numbers(message: TensorMessage, data: memoryview, row: Row) -> np.ndarray[Any, Any]:
    """Return the values of a numeric type as a 1-D array of their bits (of type ``row.stored``).

    `data` is the bytes of the message. Complex numbers are two values each. Raises
    TensorProtoError: the type cannot hold a value.
    """
    if row.coding == "bytes":
        offset, nbytes = message.float8 or (0, 0)
        return np.frombuffer(data[offset : offset + nbytes], np.uint8)
    if row.coding == "varint":
        return _narrowed(_read(message, row.field, "int64"), row)
    floats = _read(message, row.field, "float32" if row.stored == "<u4" else "float64")
    return floats.view(row.stored)


def strings(message: TensorMessage, numel: int) -> list[bytes]:
    """Return the values of a message of strings, in a new list.

    If there are more than `numel`, which is an error of the caller's to report, they are not
    decoded: as many empty strings are returned.
    """
    payload = message.values(STRING.field)
    if payload is None or payload.n > numel:
        return [b""] * (payload.n if payload else 0)
    impl = from_items([payload.n], TypeMeta.Make("string"), [b""] * payload.n)
    payload.into(impl, 0)
    return items_of(impl)


def strings_of_content(content: memoryview, numel: int) -> list[bytes]:
    """Return the strings of a tensor_content: varints of the lengths, then the bytes of all.

    Raises TensorProtoError: the bytes are not `numel` strings in that format. Follows
    port::EncodeStringList, tensorflow/core/platform/tensor_coding.cc, TensorFlow 2.21.
    """
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) < 0x80)[:numel]
    begin = int(ends[-1]) + 1 if len(ends) else 0
    # Consecutive varints are the body of a packed field.
    packed = length_head(_INT64_VAL, begin) + bytes(content[:begin])
    lengths = _read(TensorMessage(packed), _INT64_VAL, "int64").tolist()
    if len(lengths) != numel or min(lengths, default=0) < 0 or sum(lengths) != len(content) - begin:
        raise TensorProtoError(
            f"The content is not {numel} strings: {len(lengths)} lengths add up to "
            f"{sum(lengths)} bytes, but {len(content) - begin} follow.",
            "from_tensor_proto",
        )
    items = []
    for length in lengths:
        items.append(bytes(content[begin : begin + length]))
        begin += length
    return items


def _read(message: TensorMessage, field: int, dtype: str) -> np.ndarray[Any, Any]:
    """Return all values of a field as a new 1-D array."""
    payload = message.values(field)
    values = empty([payload.n if payload else 0], dtype=dtype)
    if payload is not None:
        payload.into(values.unsafeGetTensorImpl(), 0)
    return values.numpy()


def _narrowed(values: np.ndarray[Any, Any], row: Row) -> np.ndarray[Any, Any]:
    """Convert int64 values to the type of `row`. Raises TensorProtoError: one is out of range."""
    if row.stored == "?":
        truth: np.ndarray[Any, Any] = values != 0
        return truth
    if row.stored in ("i8", "u8"):
        return values.view(row.stored)
    # protobuf's int32 and uint32 are the low 32 bits of their varint
    numbers = values.astype(np.uint32 if row.stored == "u4" else np.int32)
    if len(numbers) and not row.low <= numbers.min() <= numbers.max() <= row.high:
        low, high = int(numbers.min()), int(numbers.max())
        raise TensorProtoError(
            f"Values of {row.name} range from {row.low} to {row.high}, but the message has "
            f"{low if low < row.low else high}.",
            "from_tensor_proto",
        )
    if row.narrow:
        numbers &= row.high - row.low
    return numbers.astype(row.stored)
