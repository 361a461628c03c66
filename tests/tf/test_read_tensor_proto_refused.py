# SPDX-License-Identifier: Apache-2.0
"""Messages that are not tensors: each an error that says why, soon and with little memory."""

import gc
import random
import resource
import struct
import time
from typing import Any

import numpy as np
import pytest

from bridge import at, c10, tf
from bridge.tf import read_tensor_proto
from tests.helpers.isolate import isolated
from tests.tf.golden import GOLDEN
from tests.tf.messages import (
    CONTENT,
    FLOAT,
    FLOAT8,
    HALF,
    INT,
    SCOMPLEX,
    STRING,
    UINT32,
    bytes_field,
    fixed32,
    group,
    head,
    number,
    packed,
    shape,
    varint,
)

SIX = bytes_field(CONTENT, bytes(24))

CONTRADICTIONS: dict[str, tuple[bytes, str]] = {
    "nothing at all": (b"", "names no element type"),
    "no type": (shape(2, 3) + SIX, "names no element type"),
    "content too short": (head("float32", 7) + SIX, "28 bytes.*has 24"),
    "content too long": (head("float32", 5) + SIX, "20 bytes.*has 24"),
    "content of no elements": (head("float32", 0) + SIX, "has 24"),
    "content of part of an element": (
        head("float32", 1) + bytes_field(CONTENT, b"abc"),
        "has 3",
    ),
    "no shape, much content": (varint(1, 1) + SIX, "has 24"),
    "unknown rank": (varint(1, 1) + bytes_field(2, varint(3, 1)) + SIX, "unknown rank"),
    "an unknown size": (head("float32", 2, -1) + SIX, "None"),
    "a negative size": (head("float32", 2, -3) + SIX, "-3"),
    "bytes that are no bool": (head("bool", 2) + bytes_field(CONTENT, b"\1\2"), "neither 0 nor 1"),
    "an int8 of 300": (head("int8", 1) + packed(INT, [300]), "300"),
    "a uint8 of -1": (head("uint8", 1) + packed(INT, [-1]), "-1"),
    "a half of 17 bits": (head("float16", 1) + packed(HALF, [1 << 16]), "65536"),
    "an odd number of complex parts": (
        head("complex64", 2) + fixed32(SCOMPLEX, b"abcd"),
        "pairs",
    ),
    "255 dimensions": (head("float32", *[1] * 255) + bytes_field(FLOAT, bytes(4)), "254"),
}
DAMAGED: dict[str, bytes] = {
    "a tag cut off": head("float32", 1) + b"\x92",
    "a length cut off": head("float32", 1) + b"\x22",
    "content cut off": (head("float32", 6) + SIX)[:-1],
    "a length beyond the end": head("float32", 6) + b"\x22" + number(2**40),
    "a length of 64 bits": head("float32", 6) + b"\x22" + number(2**64 - 1) + bytes(24),
    "a varint without end": head("int32", 1) + b"\x38" + b"\xff" * 20,
    "a packed varint without end": head("int32", 2) + bytes_field(INT, b"\x01\x80"),
    "a packed varint of 11 bytes": head("int32", 1) + bytes_field(INT, b"\x80" * 10 + b"\x01"),
    "packed floats cut off": head("float32", 2) + bytes_field(FLOAT, bytes(7)),
    "a fixed32 cut off": head("float32", 1) + fixed32(FLOAT, b"abc"),
    "field number 0": head("float32", 1) + varint(0, 1),
    "a field number of 30 bits": head("float32", 1) + number(1 << 32) + b"\0",
    "wire type 6": head("float32", 1) + b"\x0e\x00",
    "wire type 7": head("float32", 1) + b"\x0f\x00",
    "a group without end": head("float32", 1) + b"\x0b\x08\x01",
    "an end without group": head("float32", 1) + b"\x0c",
    "groups in groups": head("float32", 1) + b"\x0b" * 101 + b"\x0c" * 101,
    "a dimension cut off": varint(1, 1) + bytes_field(2, b"\x12\x02\x08"),
    "a shape cut off": varint(1, 1) + bytes_field(2, b"\x12"),
}
TYPES = {
    11: "quantized",
    12: "quantized",
    13: "quantized",
    15: "quantized",
    16: "quantized",
    20: "resources",
    21: "variants",
    101: "references",
    133: "references",
    34: "no such type",
    99: "no such type",
    -1: "no such type",
    2**40: "no such type",
}


def refused(message: bytes, match: str) -> None:
    for copy in (False, True):
        with pytest.raises(tf.TensorProtoError, match=match) as caught:
            tf.from_tensor_proto(message, copy=copy)
        for kind in (c10.EnforceNotMet, BufferError, ValueError):
            assert isinstance(caught.value, kind)


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_refused(name: str) -> None:
    refused(*CONTRADICTIONS[name])


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_bytes_are_refused(name: str) -> None:
    refused(DAMAGED[name], "damaged")


@pytest.mark.parametrize("number", TYPES)
def test_types_without_values_are_refused(number: int) -> None:
    refused(varint(1, number) + shape(2, 3) + SIX, TYPES[number])


@pytest.mark.parametrize(
    "sizes",
    [(2**29,), (2**31, 2**31), (2**62, 2**62), (2**63 - 1,), (2**32, 2**32, 0), (2**20,) * 4],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "string"])
def test_shapes_beyond_any_message_are_refused_without_memory(
    dtype: str, sizes: tuple[int, ...]
) -> None:
    values = bytes_field(FLOAT, bytes(4)) if dtype == "float32" else bytes_field(STRING, b"")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.thread_time()
    # An empty tensor is one only where its strides can be counted.
    refused(head(dtype, *sizes) + values, "2147483647|dimension")
    assert time.thread_time() - start < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_a_refusal_lets_the_message_go() -> None:
    message = bytearray(head("float32", 7) + SIX)
    refused(message, "28 bytes")
    gc.collect()  # the error itself, and what its traceback holds
    message.append(0)  # not locked


EXTREMES = [number(value) for value in (0, 1, 127, 128, 2**31, 2**32 - 1, 2**63, 2**64 - 1)]
INTERESTING = [b"\xff", b"\x80", b"\x00", b"\x7f", b"\x0b", b"\x0c", *EXTREMES]


def mutated(message: bytes, other: bytes, dice: random.Random) -> bytes:
    """`message` with a change or some: bits, bytes, lengths, ends, parts of another."""
    data = bytearray(message)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        place = dice.randrange(len(data) + 1)
        kind = dice.randrange(7)
        if kind == 0 and data:
            data[place % len(data)] ^= 1 << dice.randrange(8)
        elif kind == 1 and data:
            data[place % len(data)] = dice.randrange(256)
        elif kind == 2:
            data[place:place] = dice.choice(INTERESTING)
        elif kind == 3:
            del data[place : place + dice.randrange(1, 9)]
        elif kind == 4:
            data = data[:place]
        elif kind == 5:
            start = dice.randrange(len(other) + 1)
            data[place:place] = other[start : start + dice.randrange(1, 40)]
        else:
            data[place : place + 1] = dice.choice(INTERESTING)
    return bytes(data)


def read_or_refuse(message: bytes, copy: bool) -> bool:
    """Read a message; whether it was taken, and then in order."""
    try:
        x = tf.from_tensor_proto(message, copy=copy)
    except tf.TensorProtoError:
        return False
    assert x.numel() == np.prod(tuple(x.sizes()), dtype=object)
    if x.dtype().name == "string":
        assert len(x.tolist() if x.dim() else [x.tolist()]) == (x.size(0) if x.dim() else 1)
        return True
    data = x.clone().view("uint8") if x.dim() else x.clone().view(1).view("uint8")
    assert data.nbytes() == x.nbytes() <= read_tensor_proto.MAX_NBYTES
    assert isinstance(x.clone(), at.Tensor)
    return True


@isolated
def test_mutations_never_crash() -> None:
    # What repeats a value may be large and right; here it is to be quick.
    read_tensor_proto.MAX_NBYTES = 1 << 20
    dice = random.Random(20240521)
    messages = [row.message for row in GOLDEN if len(row.message) < 200]
    taken = 0
    for step in range(6000):
        message = mutated(dice.choice(messages), dice.choice(messages), dice)
        taken += read_or_refuse(message, copy=bool(step & 1))
    assert 600 < taken < 5400, taken


@isolated
def test_every_end_and_every_bit() -> None:
    read_tensor_proto.MAX_NBYTES = 1 << 20
    chosen = {(row.dtype, row.by): row.message for row in GOLDEN if row.sizes == (2, 3)}
    for message in chosen.values():
        for end in range(len(message)):
            read_or_refuse(message[:end], copy=False)
        for bit in range(8 * min(len(message), 40)):
            data = bytearray(message)
            data[bit // 8] ^= 1 << bit % 8
            read_or_refuse(bytes(data), copy=True)


def test_random_bytes_never_crash() -> None:
    dice = random.Random(7)
    for _ in range(2000):
        read_or_refuse(dice.randbytes(dice.randrange(40)), copy=False)


def test_long_lists_take_time_in_proportion() -> None:
    # a million unpacked values, and a million empty dimensions
    start = time.thread_time()
    many = 200_000
    x = tf.from_tensor_proto(head("float32", many) + fixed32(FLOAT, struct.pack("<f", 2)) * many)
    assert x.numpy().sum() == 2 * many
    refused(varint(1, 1) + bytes_field(2, b"\x12\x00" * many), "4096")
    refused(
        head("float8_e5m2", 1) + bytes_field(FLOAT8, b"") + varint(UINT32, 1) * many + b"\x08",
        "damaged",
    )
    assert time.thread_time() - start < 20


def test_deep_groups_within_the_limit_are_skipped() -> None:
    deep: Any = b""
    for _ in range(100):
        deep = group(50, deep)
    assert tf.from_tensor_proto(deep + head("float32", 6) + SIX).numel() == 6


def test_an_object_with_content_alone_is_refused() -> None:
    class Content:
        tensor_content = b"abcd"

    with pytest.raises(c10.EnforceNotMet, match="A message is bytes") as caught:
        tf.from_tensor_proto(Content())
    assert isinstance(caught.value, TypeError)
