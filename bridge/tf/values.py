# SPDX-License-Identifier: Apache-2.0
"""The values of a TensorProto's `*_val` fields: as many as the message has, as bits of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.tf.errors import TensorProtoError
from bridge.tf.fields import FIXED32, FIXED64, LENGTH, VARINT, as_int64, fields, malformed

if TYPE_CHECKING:
    from bridge.tf.element_types import Row

__all__ = ["numbers", "strings", "strings_of_content"]


def numbers(data: memoryview, row: Row) -> np.ndarray[Any, Any]:
    """The values of a numeric type as an array of ``row.stored``, 1-D; complex ones as pairs.

    Repeated fields may be packed or not, and come in several pieces. Raises TensorProtoError: a
    value that the type cannot hold, or bytes that are no message.
    """
    if row.coding == "bytes":
        return _last_bytes(data, row)
    read, unit = (_varints, VARINT) if row.coding == "varint" else (_fixed, 0)
    if row.coding == "fixed":
        unit = FIXED32 if row.stored == "<u4" else FIXED64
    raw = np.dtype("<u8" if row.coding == "varint" else row.stored)
    pieces: list[np.ndarray[Any, Any]] = []
    singles: list[int] = []
    for number, wire, start, end in fields(data, 0, len(data)):
        if number != row.field:
            continue
        if wire == LENGTH:
            pieces += _drained(singles, raw)
            pieces.append(read(data[start:end], raw))
        elif wire == unit:
            singles.append(start if wire == VARINT else int.from_bytes(data[start:end], "little"))
    pieces += _drained(singles, raw)
    values = np.concatenate(pieces) if pieces else np.empty(0, raw)
    return values if row.coding == "fixed" else _narrowed(values, row)


def strings(data: memoryview, field: int) -> list[bytes]:
    """The values of a string type."""
    return [
        bytes(data[start:end])
        for number, wire, start, end in fields(data, 0, len(data))
        if number == field and wire == LENGTH
    ]


def strings_of_content(content: memoryview, numel: int) -> list[bytes]:
    """Strings as tensor_content: the varints of their lengths, then all their bytes.

    Raises TensorProtoError: that is not what the bytes are. Follows port::EncodeStringList of
    TensorFlow, which Tensor::AsProtoTensorContent uses.
    """
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) < 0x80)
    if len(ends) < numel:
        raise malformed(f"the content has the lengths of {len(ends)} strings of {numel}", 0)
    place = int(ends[numel - 1]) + 1 if numel else 0
    lengths = _varints(content[:place], np.dtype("<u8")).tolist()
    if sum(lengths) != len(content) - place:
        raise malformed(
            f"the strings of the content take {sum(lengths)} bytes, and there are "
            f"{len(content) - place}",
            place,
        )
    items = []
    for length in lengths:
        items.append(bytes(content[place : place + length]))
        place += length
    return items


def _drained(singles: list[int], raw: np.dtype[Any]) -> list[np.ndarray[Any, Any]]:
    """The values that came one by one, as an array, taken out of their list."""
    pieces = [np.array(singles, raw)] if singles else []
    singles.clear()
    return pieces


def _fixed(packed: memoryview, raw: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if len(packed) % raw.itemsize:
        raise malformed(f"{len(packed)} bytes are no whole number of {raw.itemsize}", 0)
    return np.frombuffer(packed, raw)


def _varints(packed: memoryview, raw: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Decode varints that stand one after another, all at once, byte by byte of each."""
    data = np.frombuffer(packed, np.uint8)
    ends = np.flatnonzero(data < 0x80)
    starts = np.concatenate((np.zeros(1, np.intp), ends + 1))
    if starts[-1] != len(data):
        raise malformed("a packed varint does not end", len(data))
    lengths = np.diff(starts)
    longest = int(lengths.max(initial=0))
    if longest > 10:
        raise malformed("a packed varint is longer than ten bytes", 0)
    values = np.zeros(len(ends), raw)
    for place in range(longest):
        has = np.flatnonzero(lengths > place)
        values[has] |= (data[starts[has] + place] & 0x7F).astype(raw) << raw.type(7 * place)
    return values


def _last_bytes(data: memoryview, row: Row) -> np.ndarray[Any, Any]:
    last = data[:0]
    for number, wire, start, end in fields(data, 0, len(data)):
        if number == row.field and wire == LENGTH:
            last = data[start:end]
    return np.frombuffer(last, np.uint8)


def _narrowed(values: np.ndarray[Any, Any], row: Row) -> np.ndarray[Any, Any]:
    """What the varints say as elements of the type. Raises TensorProtoError: it cannot hold one."""
    if row.stored == "?":
        truth: np.ndarray[Any, Any] = values != 0
        return truth
    if row.stored == "u8":
        return values
    if row.stored == "i8":
        return values.view(np.int64)
    # protobuf's int32 and uint32 are the low 32 bits of their varint
    numbers = values.astype(np.uint32)
    numbers = numbers if row.stored == "u4" else numbers.view(np.int32)
    if len(numbers) and not row.low <= numbers.min() <= numbers.max() <= row.high:
        low, high = as_int64(int(numbers.min())), int(numbers.max())
        raise TensorProtoError(
            f"Values of {row.name} are from {row.low} to {row.high}, and the message has "
            f"{low if low < row.low else high}.",
            "",
            "from_tensor_proto",
        )
    if row.narrow:
        numbers &= row.high - row.low
    return numbers.astype(row.stored)
