# SPDX-License-Identifier: Apache-2.0
"""The fields of a protobuf message, one by one, out of its bytes.

Follows the encoding of Protocol Buffers ("Wire types", protobuf.dev): a field is a varint of its
number and wire type, then its value. Every length is checked against what is left, so that no
bytes whatever lead outside of the message.
"""

from __future__ import annotations

from bridge.tf.errors import TensorProtoError

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FIXED32", "FIXED64", "LENGTH", "VARINT", "as_int64", "fields", "tagged", "varint"]

VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)
# How deep protobuf's own parsers follow groups in groups.
_MAX_DEPTH = 100
_MAX_TAG = (1 << 32) - 1


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


def tagged(number: int, payload: bytes) -> bytes:
    """Encode a length-delimited field."""
    return varint(number << 3 | LENGTH) + varint(len(payload)) + payload


def as_int64(value: int) -> int:
    """Read the 64 bits of a varint as a signed int."""
    return value - (1 << 64) if value >> 63 else value


def fields(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, wire type, a, b) of each field of ``data[start:end]``, in order.

    A varint is `a`; what has bytes is ``data[a:b]``. Groups, which no message here has, are
    passed over.

    Raises TensorProtoError: a field is cut off, or is none.
    """
    depth = 0
    while start < end:
        tag, start = _read_varint(data, start, end)
        number, wire = tag >> 3, tag & 7
        if number == 0 or tag > _MAX_TAG:
            raise malformed(f"a field has the number {number}, which none can have", start)
        if wire == VARINT:
            value, start = _read_varint(data, start, end)
            if not depth:
                yield number, wire, value, 0
            continue
        if wire == GROUP:
            depth += 1
            if depth > _MAX_DEPTH:
                raise malformed("groups are nested too deep", start)
            continue
        if wire == END_GROUP:
            depth -= 1
            if depth < 0:
                raise malformed("a group ends that has not begun", start)
            continue
        if wire == LENGTH:
            length, start = _read_varint(data, start, end)
        elif wire == FIXED32:
            length = 4
        elif wire == FIXED64:
            length = 8
        else:
            raise malformed(f"field {number} is of wire type {wire}, which there is not", start)
        if length > end - start:
            raise malformed(
                f"field {number} takes {length} bytes, and {end - start} are left", start
            )
        if not depth:
            yield number, wire, start, start + length
        start += length
    if depth:
        raise malformed("a group does not end", start)


def malformed(what: str, where: int) -> TensorProtoError:
    """The error of bytes that are no message."""
    return TensorProtoError(
        f"The bytes are no message, or were damaged: {what} (at byte {where}).",
        "",
        "from_tensor_proto",
    )


def _read_varint(data: memoryview, start: int, end: int) -> tuple[int, int]:
    """Give the value of the varint at `start`, and where it ends."""
    value = shift = 0
    for place in range(start, min(end, start + 10)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, place + 1
        shift += 7
    raise malformed("a varint does not end", start)
