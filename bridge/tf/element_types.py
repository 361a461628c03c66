# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's element types: per type its number and the TensorProto field of its values.

The numbers follow types.proto and tensor.proto, TensorFlow 2.21.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One element type of TensorFlow.

    `number`: the type's DataType. `field`: the field number of its values. `coding`: how that field
    stores them, as "varint", "fixed" (floats of 4 or 8 bytes), "bytes" (one byte per element) or
    "strings". `stored`: the NumPy type with the bits of one stored number. `low`, `high`: for
    varints the range of valid values, where it is narrower than the range of the field.
    """

    name: str
    number: int
    field: int
    coding: str
    stored: str
    low: int = 0
    high: int = 0

    @property
    def narrow(self) -> bool:
        """Whether an element has fewer bits than its byte, whose upper bits are then zero."""
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
        "quantized elements have a scale, which the message lacks; use tf.bitcast to the plain "
        "integers first",
    ),
}


def why_not(number: int) -> str:
    """Return why elements of a type that `BY_NUMBER` lacks cannot be read."""
    if 100 < number < 200:
        return "references to variables of a running TensorFlow are not values"
    return _REFUSED.get(number, "TensorFlow 2.21 has no such type")
