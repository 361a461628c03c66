# SPDX-License-Identifier: Apache-2.0
"""Blobs as messages written by hand: by other writers, and ones that no writer should make.

Used with the real Caffe2 to record what it does with each, and with the bridge. Runs on Python 3.8.
"""

import random
import struct

CPU_DEVICE = b"\x42\x02\x08\x00"


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def tag(field, wire):
    return varint(field << 3 | wire)


def bytes_field(field, data):
    return tag(field, 2) + varint(len(data)) + data


def int_field(field, n):
    return tag(field, 0) + varint(n)


def dims(*sizes):
    return b"".join(int_field(1, size) for size in sizes)


def floats(*values):
    return bytes_field(3, struct.pack(f"<{len(values)}f", *values))


def segment(begin, end):
    return bytes_field(11, int_field(1, begin) + int_field(2, end))


def blob(*tensors, kind=b"Tensor"):
    parts = b"".join(bytes_field(3, tensor) for tensor in tensors)
    return bytes_field(1, b"crafted") + bytes_field(2, kind) + parts


def int8(data=b"\1\2", data_type=6, scale=0.5, bias=3.0, sizes=(2,), more=b"", leave_out=0):
    fields = {
        2: int_field(2, 8),
        3: b"\x19" + struct.pack("<d", scale),
        4: b"\x21" + struct.pack("<d", bias),
        5: int_field(5, 0),
        8: int_field(8, data_type),
    }
    fields.pop(leave_out, None)
    made = dims(*sizes) + b"".join(fields.values()) + bytes_field(6, data) + more
    return bytes_field(2, b"Int8TensorCPU") + bytes_field(5, made)


def _typed(data_type, payload, *sizes):
    return blob(dims(*sizes) + int_field(2, data_type) + payload)


def _types():
    """Payloads in the fields of other types, in byte_data, raw_data, too wide, too few."""
    one = floats(1, 2)
    for number in range(16):
        yield f"floats as type {number}", _typed(number, one, 2)
        yield f"no values, type {number}", _typed(number, b"", 2)
        yield f"empty, type {number}", _typed(number, b"", 0)
        yield f"0 x 3, type {number}", _typed(number, b"", 0, 3)
        for nbytes in (2, 4):
            data = bytes(range(nbytes))
            yield (
                f"{nbytes} bytes of byte_data, type {number}",
                _typed(number, bytes_field(5, data), 2),
            )
        both = bytes_field(5, b"\1\2\3\4") + bytes_field(4, b"\7\7")
        yield f"byte_data and int32_data, type {number}", _typed(number, both, 2)
        empty = bytes_field(5, b"") + bytes_field(4, b"\7")
        yield f"empty byte_data and int32_data, type {number}", _typed(number, empty, 1)
    wide = b"".join(varint(n) for n in (2, 200, 256, 257, 65537, 1 << 31, 1 << 32, -1, -(1 << 33)))
    for number in (2, 5, 6, 7, 8, 9, 12):
        yield f"wide numbers as type {number}", _typed(number, bytes_field(4, wide), 9)
    yield "wide int64", _typed(10, bytes_field(10, wide), 9)
    yield (
        "unknown type after a known one",
        blob(
            dims(1) + int_field(2, 13) + int_field(2, 99) + bytes_field(9, struct.pack("<d", 2.5))
        ),
    )
    yield "type as a varint of 33 bits", _typed((1 << 32) + 2, bytes_field(4, b"\1\2"), 2)
    yield "more strings than elements", _typed(4, bytes_field(6, b"a") + bytes_field(6, b"b"), 1)
    for storage in range(6):
        yield f"storage type {storage}", _typed(1, int_field(12, storage) + one, 2)


def _shapes():
    yield "negative dimension", blob(dims(-2) + floats(1, 2))
    yield "negative dimensions", blob(dims(-1, -2) + floats(1, 2))
    yield "0-d", blob(floats(1))
    yield "0-d without a value", blob(b"")
    yield "no tensor", blob()
    yield "30 dimensions of 1", blob(dims(*[1] * 30) + floats(1))
    yield "huge", blob(dims(1 << 62) + floats(1))
    yield "huge by 0", blob(dims(1 << 62, 0, 1 << 62))
    yield "overflow to 2", blob(dims(1 << 63, 2, 2) + floats(1, 2))
    for begin, end in ((0, 2), (1, 3), (2, 4), (3, 5), (2, 0), (-1, 1), (1, 1), (0, 1 << 62)):
        made = blob(dims(4) + floats(1, 2) + segment(begin, end))
        yield f"segment {begin} to {end} of 4", made
    yield "segment without end", blob(dims(2) + floats(1, 2) + bytes_field(11, int_field(1, 0)))
    yield "segment without begin", blob(dims(2) + floats(1, 2) + bytes_field(11, int_field(2, 2)))
    halves = bytes_field(11, int_field(1, 0)) + bytes_field(11, int_field(2, 2))
    yield "segment in two parts", blob(dims(2) + floats(1, 2) + halves)
    for number in (-1, 0, 2, 3, 5, 9, 11, 1 << 31):
        device = bytes_field(8, int_field(1, number))
        yield f"device type {number}", blob(dims(1) + floats(1) + device)
    yield (
        "device of the CPU with a number",
        blob(dims(1) + floats(1) + bytes_field(8, int_field(1, 0) + int_field(2, 3))),
    )
    yield "device without type", blob(dims(1) + floats(1) + bytes_field(8, b""))


def _kinds():
    content = bytes_field(4, b"abc")
    for kind in (b"Tensor", b"TensorCPU", b"std::string", b"", b"tensor", b"string", b"Tensor\0"):
        yield f"kind {kind!r}", blob(dims(1) + floats(1), kind=kind) + content
    yield "string without content", bytes_field(2, b"std::string")
    yield "string in chunks", bytes_field(2, b"std::string") + content + int_field(6, 3)
    yield "string twice", bytes_field(2, b"std::string") + content + bytes_field(4, b"z")
    yield "kind twice", bytes_field(2, b"x") + blob(dims(1) + floats(1))
    yield "bad tensor in a string", blob(b"\xff", kind=b"std::string") + content
    yield "bad int8 in a tensor", blob(dims(1) + floats(1)) + bytes_field(5, int_field(1, 1))
    yield "tensor in two parts", blob(dims(2) + floats(1, 2), int_field(2, 1))
    yield "two tensors", blob(dims(2) + floats(1, 2), dims(2) + floats(3, 4))


def _int8s():
    yield "int8", int8()
    yield "int8 of int32", int8(varint(-1) + varint(70000), 2)
    yield "int8 without type", int8(leave_out=8)
    for number in (0, 1, 7, 10, 99):
        yield f"int8 of type {number}", int8(data_type=number)
    for number in (2, 3, 4, 5):
        yield f"int8 without field {number}", int8(leave_out=number)
    for value in (3.7, -3.7, 2147483647.0, -2147483648.0):
        yield f"int8 with zero point {value!r}", int8(bias=value)
    for value in (0.1, 1e300, 1e-300, float("nan"), float("-inf")):
        yield f"int8 with scale {value!r}", int8(scale=value)
    yield "int8 of wide numbers", int8(varint(300) + varint(-1))
    yield "int8, negative dimension", int8(sizes=(-2,))
    yield "int8, 0-d", int8(b"\1", sizes=())
    yield "int8, empty", int8(b"", sizes=(0,))
    yield "int8, too few", int8(sizes=(3,))
    yield "int8, too many", int8(sizes=(1,))
    yield "int8 by axis", int8(more=bytes_field(9, b"\0" * 16) + int_field(11, 0))
    yield "int8, bad scales", int8(more=bytes_field(9, b"\0" * 15))
    yield "int8, no qtensor", bytes_field(2, b"Int8TensorCPU")


def _wire():
    good = dims(1) + floats(1)
    number = dims(1) + int_field(2, 10)
    yield (
        "varint of ten bytes, bits to spare",
        blob(number + bytes_field(10, b"\xff" * 9 + b"\x7f")),
    )
    yield "varint of eleven bytes", blob(number + bytes_field(10, b"\xff" * 10 + b"\1"))
    yield "varint longer than needed", blob(number + bytes_field(10, b"\x81\x80\x80\0"))
    yield "varint cut short", blob(number + bytes_field(10, b"\x80"))
    yield "bad varints in a field not used", blob(good + bytes_field(4, b"\x80"))
    yield "bad floats in a field not used", blob(number + bytes_field(10, b"\1") + b"\x1a\1\0")
    yield "tag longer than needed", b"\x92\x80\0\6Tensor" + bytes_field(3, good)
    yield "tag of six bytes", b"\x92\x80\x80\x80\x80\0\6Tensor" + bytes_field(3, good)
    yield "length longer than needed", b"\x12\x86\0Tensor" + bytes_field(3, good)
    yield "length of six bytes", b"\x12\x86\x80\x80\x80\x80\0Tensor" + bytes_field(3, good)
    yield "field 0", b"\2\0" + blob(good)
    yield "zero at the end", blob(good) + b"\0"
    for wire in (3, 4, 6, 7):
        yield f"wire type {wire}", tag(20, wire) + blob(good)
    yield "name as a number", int_field(1, 3) + blob(good)
    yield "tensor as a number", int_field(3, 3) + blob(good)
    yield "floats as fixed64", blob(tag(3, 1) + b"\0" * 8 + good)
    yield "dims as fixed32", blob(tag(1, 5) + b"\0" * 4 + good)
    yield "type as bytes", blob(good + bytes_field(2, b"\1"))
    yield "five bytes of floats", blob(dims(1) + bytes_field(3, b"\0" * 5))
    yield (
        "floats packed, single and packed",
        blob(dims(4) + floats(1) + b"\x1d\0\0\0\x40\x1d\0\0\x40\x40" + floats(4)),
    )
    yield (
        "int32 packed, single and packed",
        blob(dims(4) + int_field(2, 2) + b"\x22\1\5\x20\6\x20\x87\0\x22\1\x08"),
    )
    yield "dims packed and single", blob(b"\x0a\2\1\2" + dims(1) + floats(1, 2))
    yield "name that is not UTF-8", blob(good + bytes_field(7, b"\xff"))
    yield "highest field number", blob(good + varint(((1 << 29) - 1) << 3) + b"\1")
    yield "field number beyond 32 bits", blob(good + varint(1 << 32 | 99 << 3) + b"\1")
    for depth in (99, 100, 101, 5000):
        groups = tag(50, 3) * depth + tag(50, 4) * depth
        yield f"groups {depth} deep", blob(good) + groups
        yield f"groups {depth} deep in the tensor", blob(good + groups)
    yield "group that ends as another", blob(good + tag(50, 3) + tag(51, 4))
    yield "group without end", blob(good + tag(50, 3))
    yield "bad device", blob(good + bytes_field(8, b"\xff"))
    yield "bad external data", blob(good + bytes_field(14, b"\x22\1\x80"))


def crafted():
    """Give (label, message) pairs."""
    for part in (_types, _shapes, _kinds, _int8s, _wire):
        yield from part()


def mutated(rng: random.Random, seeds):
    """Give one of the messages `seeds`, changed in a few places."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        kind, at = rng.randrange(9), rng.randrange(len(data) + 1)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + rng.randrange(1, 9)]
        elif kind == 4:
            data[at:at] = data[at : at + rng.randrange(1, 17)]
        elif kind == 5:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 5)))
        elif kind == 6:
            other = rng.choice(seeds)
            data[at:] = other[rng.randrange(len(other) + 1) :]
        elif kind == 7:
            odd = (b"\xff" * 9 + b"\1", b"\x80" * 4 + b"\x10", b"\xff" * 4 + b"\7", b"\x80\0")
            data[at : at + 1] = rng.choice(odd)
        else:
            data += rng.choice(seeds)
    return bytes(data)
