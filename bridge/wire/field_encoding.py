# SPDX-License-Identifier: Apache-2.0
"""Encoding of single fields of a message; bridge.wire.tensor_encoding encodes tensor data."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """Encode an int; a negative one as the ten bytes of its 64-bit two's complement.

    >>> varint(300).hex(), len(varint(-1))
    ('ac02', 10)
    """
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint_field(number: int, value: int) -> bytes:
    """Encode a field whose value is one int."""
    return varint(number << 3) + varint(value)


def length_head(number: int, nbytes: int) -> bytes:
    """Encode the tag and the length of a length-delimited field of `nbytes`."""
    return varint(number << 3 | 2) + varint(nbytes)


def tagged(number: int, payload: bytes) -> bytes:
    """Encode a length-delimited field."""
    return length_head(number, len(payload)) + payload
