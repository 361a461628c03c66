# SPDX-License-Identifier: Apache-2.0
"""The values of a TensorProto's `*_val` fields: as many as the message has, as bits of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.at.factories import empty
from bridge.c10.rebuild import from_items, items_of
from bridge.c10.type_meta import TypeMeta
from bridge.tf.element_types import STRING
from bridge.tf.errors import TensorProtoError
from bridge.tf.message import TensorMessage
from bridge.wire.encoding import length_head

if TYPE_CHECKING:
    from bridge.tf.element_types import Row

__all__ = ["numbers", "strings", "strings_of_content"]

# A field of varints of 64 bits.
_INT64_VAL = 10


def numbers(message: TensorMessage, data: memoryview, row: Row) -> np.ndarray[Any, Any]:
    """The values of a numeric type, one after the other, as bits of their type (``row.stored``).

    `data` are the bytes of the message. Raises TensorProtoError: a value that the type cannot hold.
    """
    if row.coding == "bytes":
        offset, nbytes = message.float8 or (0, 0)
        return np.frombuffer(data[offset : offset + nbytes], np.uint8)
    if row.coding == "varint":
        return _narrowed(_read(message, row.field, "int64"), row)
    floats = _read(message, row.field, "float32" if row.stored == "<u4" else "float64")
    return floats.view(row.stored)


def strings(message: TensorMessage, numel: int) -> list[bytes]:
    """The values of a string type; of more than `numel`, as many as there are, all empty."""
    payload = message.values(STRING.field)
    if payload is None or payload.n > numel:
        return [b""] * (payload.n if payload else 0)
    impl = from_items([payload.n], TypeMeta.Make("string"), [b""] * payload.n)
    payload.into(impl, 0)
    return items_of(impl)


def strings_of_content(content: memoryview, numel: int) -> list[bytes]:
    """Strings as tensor_content: the varints of their lengths, then all their bytes.

    Raises TensorProtoError: that is not what the bytes are. Follows port::EncodeStringList of
    TensorFlow, which Tensor::AsProtoTensorContent uses.
    """
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) < 0x80)[:numel]
    begin = int(ends[-1]) + 1 if len(ends) else 0
    # Varints one after another are what a packed field is.
    packed = length_head(_INT64_VAL, begin) + bytes(content[:begin])
    lengths = _read(TensorMessage(packed), _INT64_VAL, "int64").tolist()
    if len(lengths) != numel or min(lengths, default=0) < 0 or sum(lengths) != len(content) - begin:
        raise TensorProtoError(
            f"The content is not {numel} strings: the lengths of {len(lengths)} of them add up to "
            f"{sum(lengths)}, and {len(content) - begin} bytes follow.",
            "from_tensor_proto",
        )
    items = []
    for length in lengths:
        items.append(bytes(content[begin : begin + length]))
        begin += length
    return items


def _read(message: TensorMessage, field: int, dtype: str) -> np.ndarray[Any, Any]:
    """All values of a field, in memory of their own."""
    payload = message.values(field)
    values = empty([payload.n if payload else 0], dtype=dtype)
    if payload is not None:
        payload.into(values.unsafeGetTensorImpl(), 0)
    return values.numpy()


def _narrowed(values: np.ndarray[Any, Any], row: Row) -> np.ndarray[Any, Any]:
    """Ints of 64 bits as elements of the type. Raises TensorProtoError: it cannot hold one."""
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
            f"Values of {row.name} are from {row.low} to {row.high}, and the message has "
            f"{low if low < row.low else high}.",
            "from_tensor_proto",
        )
    if row.narrow:
        numbers &= row.high - row.low
    return numbers.astype(row.stored)
