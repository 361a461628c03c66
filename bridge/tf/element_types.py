# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's element types: a row a type, its number and where a TensorProto keeps its values.

Numbers are those of types.proto and tensor.proto, TensorFlow 2.21.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BY_NAME", "BY_NUMBER", "ROWS", "STRING", "Row", "why_not"]


class Row(NamedTuple):
    """`number` of the type, of the `field` of its values, and NumPy's `stored` type for the bits.

    `coding` of the values in that field: "varint" (`bits` of it count, `signed` or not), "fixed"
    (floats, `stored` the type of each), "bytes" (one byte an element) or "strings".
    """

    name: str
    number: int
    field: int
    coding: str
    stored: str
    # Numbers that the type has fewer of than its field: the range of what may be met.
    low: int = 0
    high: int = 0

    @property
    def narrow(self) -> bool:
        """Whether an element is less than its byte, whose upper bits are zero then."""
        return 0 < self.high < 127


def _small(name: str, number: int, stored: str, bits: int, signed: bool) -> Row:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return Row(name, number, 7, "varint", stored, low, high)


STRING = Row("string", 7, 8, "strings", "O")

ROWS = (
    Row("float32", 1, 5, "fixed", "<u4"),
    Row("float64", 2, 6, "fixed", "<u8"),
    _small("int32", 3, "i4", 32, True),
    _small("uint8", 4, "u1", 8, False),
    _small("int16", 5, "i2", 16, True),
    _small("int8", 6, "i1", 8, True),
    STRING,
    Row("complex64", 8, 9, "fixed", "<u4"),
    Row("int64", 9, 10, "varint", "i8", -(1 << 63), (1 << 63) - 1),
    Row("bool", 10, 11, "varint", "?"),
    Row("bfloat16", 14, 13, "varint", "u2", 0, 0xFFFF),
    _small("uint16", 17, "u2", 16, False),
    Row("complex128", 18, 12, "fixed", "<u8"),
    Row("float16", 19, 13, "varint", "u2", 0, 0xFFFF),
    Row("uint32", 22, 16, "varint", "u4", 0, 0xFFFFFFFF),
    Row("uint64", 23, 17, "varint", "u8", 0, (1 << 64) - 1),
    Row("float8_e5m2", 24, 18, "bytes", "u1"),
    Row("float8_e4m3fn", 25, 18, "bytes", "u1"),
    Row("float8_e4m3fnuz", 26, 18, "bytes", "u1"),
    Row("float8_e4m3b11fnuz", 27, 18, "bytes", "u1"),
    Row("float8_e5m2fnuz", 28, 18, "bytes", "u1"),
    _small("int4", 29, "i1", 4, True),
    _small("uint4", 30, "u1", 4, False),
    _small("int2", 31, "i1", 2, True),
    _small("uint2", 32, "u1", 2, False),
    Row("float4_e2m1fn", 33, 18, "bytes", "u1"),
)

BY_NAME = {row.name: row for row in ROWS}
BY_NUMBER = {row.number: row for row in ROWS}

_REFUSED = {
    0: "it names no element type",
    20: "resources are handles of a running TensorFlow, not values",
    21: "variants are objects of a running TensorFlow, not values",
    **dict.fromkeys(
        (11, 12, 13, 15, 16),
        "quantized elements carry a scale that the message lacks; use tf.bitcast to the plain "
        "integers first",
    ),
}


def why_not(number: int) -> str:
    """Why elements of a type without a row are not read."""
    if 100 < number < 200:
        return "references to variables of a running TensorFlow are not values"
    return _REFUSED.get(number, "TensorFlow 2.21 has no such type")
