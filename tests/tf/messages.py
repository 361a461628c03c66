# SPDX-License-Identifier: Apache-2.0
"""TensorProtos by hand: fields in any order and form, so that readers can be asked about each."""

from __future__ import annotations

from collections.abc import Iterable

DTYPE, SHAPE, VERSION, CONTENT = 1, 2, 3, 4
FLOAT, DOUBLE, INT, STRING, SCOMPLEX, INT64, BOOL, DCOMPLEX, HALF = range(5, 14)
UINT32, UINT64, FLOAT8 = 16, 17, 18

TYPES = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "string": 7,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "bfloat16": 14,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
    "float8_e5m2": 24,
    "float8_e4m3fn": 25,
}


def number(value: int) -> bytes:
    """A varint, of a negative int the 64 bits."""
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def varint(field: int, value: int) -> bytes:
    """A field of wire type 0."""
    return number(field << 3) + number(value)


def fixed64(field: int, data: bytes) -> bytes:
    """A field of wire type 1."""
    return number(field << 3 | 1) + data


def bytes_field(field: int, data: bytes) -> bytes:
    """A field of wire type 2."""
    return number(field << 3 | 2) + number(len(data)) + data


def group(field: int, inside: bytes) -> bytes:
    """A field of wire types 3 and 4."""
    return number(field << 3 | 3) + inside + number(field << 3 | 4)


def fixed32(field: int, data: bytes) -> bytes:
    """A field of wire type 5."""
    return number(field << 3 | 5) + data


def packed(field: int, values: Iterable[int]) -> bytes:
    """A packed repeated field of varints."""
    return bytes_field(field, b"".join(map(number, values)))


def shape(*sizes: int) -> bytes:
    """The field of the shape."""
    return bytes_field(SHAPE, b"".join(bytes_field(2, varint(1, size)) for size in sizes))


def head(dtype: str, *sizes: int) -> bytes:
    """The type and the shape."""
    return varint(DTYPE, TYPES[dtype]) + shape(*sizes)
