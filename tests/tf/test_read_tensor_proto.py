# SPDX-License-Identifier: Apache-2.0
"""`tf.from_tensor_proto`: what is viewed, what is decoded, and whose memory it is."""

import array
import gc
import struct
import weakref
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import c10, caffe2, tf
from tests.helpers.check import check_tensor
from tests.helpers.ids import shown
from tests.tf.messages import (
    BOOL,
    CONTENT,
    DCOMPLEX,
    DOUBLE,
    FLOAT,
    FLOAT8,
    HALF,
    INT,
    INT64,
    SCOMPLEX,
    STRING,
    UINT32,
    UINT64,
    bytes_field,
    fixed32,
    fixed64,
    group,
    head,
    packed,
    shape,
    varint,
)

SIX = np.arange(6, dtype=np.float32)
# Fields that a younger TensorFlow may add, of every wire type.
UNKNOWN = (
    varint(40, 7)
    + fixed64(41, b"12345678")
    + bytes_field(42, b"\x08")
    + group(43, varint(1, 1) + group(2, fixed32(4, b"abcd")) + bytes_field(4, b"xyz"))
    + fixed32(44, b"abcd")
)


def content(data: bytes) -> bytes:
    return bytes_field(CONTENT, data)


def address(buffer: Any) -> int:
    return int(np.frombuffer(buffer, np.uint8).ctypes.data)


class Message:
    """A message object with no fields to look at, only its bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def SerializeToString(self) -> bytes:
        return self.data


def six_at(offset: int) -> bytes:
    """A message of six floats whose content begins at `offset`, more or less far aligned."""
    before = head("float32", 2, 3)
    padding = offset - len(before) - 2
    fill = bytes_field(100, bytes(padding - 3))
    message = before + fill + content(SIX.tobytes())
    assert message.index(SIX.tobytes()) == offset
    return message


@pytest.mark.parametrize("offset", range(24, 34))
def test_content_is_viewed_where_it_stands(offset: int) -> None:
    message = six_at(offset)
    x = tf.from_tensor_proto(message)
    assert x.data_ptr() == address(message) + offset
    check_tensor(x, (2, 3), data=SIX.tobytes(), address=x.data_ptr(), readonly=True)
    aligned = x.data_ptr() % 4 == 0
    assert x.numpy().flags.aligned is aligned
    assert np.asarray(x).flags.aligned is aligned
    assert (x.numpy() * 2 == SIX.reshape(2, 3) * 2).all()
    assert x.t().contiguous().tolist() == SIX.reshape(2, 3).T.tolist()
    assert bridge.to_torch(x).sum().item() == 15


def test_a_view_keeps_the_message() -> None:
    class Bytes(bytearray):
        pass

    message = Bytes(six_at(24))
    gone = weakref.ref(message)
    x = tf.from_tensor_proto(message)
    del message
    gc.collect()
    assert gone() is not None
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    view = x[1].numpy()
    del x
    gc.collect()
    assert gone() is not None
    del view
    gc.collect()
    assert gone() is None


def test_bytes_are_read_only() -> None:
    x = tf.from_tensor_proto(six_at(24))
    assert x.readonly
    with pytest.raises(c10.EnforceNotMet):
        x.fill_(1)
    with pytest.raises(BufferError):
        x.__dlpack__()


def test_a_writable_message_gives_a_writable_view() -> None:
    message = bytearray(six_at(24))
    x = tf.from_tensor_proto(message)
    assert not x.readonly
    x[0, 0] = 9
    assert struct.unpack_from("f", message, 24) == (9,)


def test_copy_gives_memory_of_its_own() -> None:
    message = six_at(25)
    x = tf.from_tensor_proto(message, copy=True)
    assert not x.readonly
    check_tensor(x, (2, 3), data=SIX.tobytes())
    assert x.data_ptr() % 64 == 0
    x.fill_(0)
    assert message == six_at(25)


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, Message], ids=lambda w: w.__name__)
def test_a_message_is_taken_as_bytes_buffer_or_object(wrap: Any) -> None:
    assert tf.from_tensor_proto(wrap(six_at(24))).tolist() == [[0, 1, 2], [3, 4, 5]]
    words = array.array("B", six_at(24))
    assert tf.from_tensor_proto(words).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("given", [None, "text", 5, [1, 2], object()], ids=shown)
def test_objects_that_are_not_messages_are_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="SerializeToString") as caught:
        tf.from_tensor_proto(given)
    assert isinstance(caught.value, c10.EnforceNotMet)


@pytest.mark.parametrize("copy", [None, 0, 1, "yes"], ids=repr)
def test_copy_is_a_bool(copy: Any) -> None:
    with pytest.raises(TypeError, match="copy"):
        tf.from_tensor_proto(six_at(24), copy=copy)


F = struct.Struct("<f").pack
D = struct.Struct("<d").pack
# Element type, the fields of three values, the values.
VALUES: dict[str, tuple[str, list[bytes], list[Any]]] = {
    "float": ("float32", [bytes_field(FLOAT, F(1) + F(-2) + F(3.5))], [1, -2, 3.5]),
    "float unpacked": ("float32", [fixed32(FLOAT, F(v)) for v in (1, -2, 3.5)], [1, -2, 3.5]),
    "float in pieces": (
        "float32",
        [fixed32(FLOAT, F(1)), bytes_field(FLOAT, F(-2)), fixed32(FLOAT, F(3.5))],
        [1, -2, 3.5],
    ),
    "double": ("float64", [bytes_field(DOUBLE, D(1) + D(-2) + D(1e300))], [1, -2, 1e300]),
    "double unpacked": ("float64", [fixed64(DOUBLE, D(v)) for v in (1, 2, 3)], [1, 2, 3]),
    "int32": ("int32", [packed(INT, [1, -2, -(2**31)])], [1, -2, -(2**31)]),
    "int32 unpacked": ("int32", [varint(INT, v) for v in (1, -2, 3)], [1, -2, 3]),
    "int32 mixed": ("int32", [varint(INT, 1), packed(INT, [-2]), varint(INT, 3)], [1, -2, 3]),
    "int32 in 32 bits": ("int32", [packed(INT, [1, 2**32 - 2, 2**32 + 3])], [1, -2, 3]),
    "int16": ("int16", [packed(INT, [1, -2, -(2**15)])], [1, -2, -(2**15)]),
    "int8": ("int8", [packed(INT, [1, -128, 127])], [1, -128, 127]),
    "uint8": ("uint8", [packed(INT, [0, 128, 255])], [0, 128, 255]),
    "uint16": ("uint16", [packed(INT, [0, 300, 65535])], [0, 300, 65535]),
    "int64": ("int64", [packed(INT64, [1, -(2**63), 2**63 - 1])], [1, -(2**63), 2**63 - 1]),
    "int64 unpacked": ("int64", [varint(INT64, v) for v in (1, -2, 3)], [1, -2, 3]),
    "bool": ("bool", [packed(BOOL, [1, 0, 2**40])], [True, False, True]),
    "uint32": ("uint32", [packed(UINT32, [1, 2**32 - 1, 2**31])], [1, 2**32 - 1, 2**31]),
    "uint64": ("uint64", [packed(UINT64, [1, 2**64 - 1, 2**63])], [1, 2**64 - 1, 2**63]),
    "half": ("float16", [packed(HALF, [0x3C00, 0xC000, 0x7BFF])], [1, -2, 65504]),
    "bfloat16": ("bfloat16", [packed(HALF, [0x3F80, 0xC000, 0x4000])], [1, -2, 2]),
    "float8": ("float8_e5m2", [bytes_field(FLOAT8, b"\x3c\xc0\x40")], [1, -2, 2]),
    "float8, the last": (
        "float8_e4m3fn",
        [bytes_field(FLOAT8, b"\x01"), bytes_field(FLOAT8, b"\x38\xc0\x40")],
        [1, -2, 2],
    ),
    "complex64": (
        "complex64",
        [bytes_field(SCOMPLEX, F(1) + F(2) + F(0) + F(-1)), fixed32(SCOMPLEX, F(3)) * 2],
        [1 + 2j, -1j, 3 + 3j],
    ),
    "complex128": (
        "complex128",
        [bytes_field(DCOMPLEX, D(1) + D(2) + D(0) + D(-1) + D(3) + D(3))],
        [1 + 2j, -1j, 3 + 3j],
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_each_type_are_read(name: str) -> None:
    dtype, fields, values = VALUES[name]
    wanted = np.array(values, c10.TypeMeta.Make(dtype).numpy)
    for sizes in [(3,), (1, 3, 1)]:
        message = head(dtype, *sizes) + b"".join(fields)
        for copy in (False, True):
            x = tf.from_tensor_proto(message, copy=copy)
            assert x.dtype().name == dtype
            assert not x.readonly
            np.testing.assert_array_equal(x.numpy(), wanted.reshape(sizes))


@pytest.mark.parametrize("name", VALUES)
def test_the_last_value_is_repeated(name: str) -> None:
    dtype, fields, values = VALUES[name]
    x = tf.from_tensor_proto(head(dtype, 2, 4) + b"".join(fields))
    wanted = np.array(values + values[-1:] * 5, c10.TypeMeta.Make(dtype).numpy)
    np.testing.assert_array_equal(x.numpy(), wanted.reshape(2, 4))


@pytest.mark.parametrize("dtype", sorted({dtype for dtype, *_ in VALUES.values()}))
def test_no_value_is_zeros(dtype: str) -> None:
    x = tf.from_tensor_proto(head(dtype, 2, 2))
    assert tuple(x.sizes()) == (2, 2)
    assert not x.numpy().any()
    assert tf.from_tensor_proto(head(dtype, 0, 2)).numel() == 0
    assert tf.from_tensor_proto(head(dtype)).numel() == 1


@pytest.mark.parametrize("name", VALUES)
def test_more_values_than_elements_are_refused(name: str) -> None:
    dtype, fields, _ = VALUES[name]
    for sizes in [(2,), (), (0,)]:
        with pytest.raises(tf.TensorProtoError, match="values"):
            tf.from_tensor_proto(head(dtype, *sizes) + b"".join(fields))


def test_fields_are_read_in_any_order_with_others_between() -> None:
    parts = [varint(1, 1), shape(2, 3), content(SIX.tobytes()), varint(3, 99)]
    for first in range(4):
        turned = parts[first:] + parts[:first]
        message = UNKNOWN + UNKNOWN.join(turned) + UNKNOWN
        assert tf.from_tensor_proto(message).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_repeated_fields_go_together() -> None:
    # protobuf: the last of a single field wins, the dimensions of both shapes count
    message = (
        varint(1, 3) + content(b"no") + varint(1, 1) + shape(2) + content(SIX.tobytes()) + shape(3)
    )
    assert tf.from_tensor_proto(message).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_content_goes_before_values() -> None:
    message = head("float32", 6) + bytes_field(FLOAT, F(7)) + content(SIX.tobytes())
    assert tf.from_tensor_proto(message).tolist() == SIX.tolist()
    # content of no bytes is none
    message = head("float32", 2) + content(SIX.tobytes()) + content(b"") + fixed32(FLOAT, F(7))
    assert tf.from_tensor_proto(message).tolist() == [7, 7]


def test_values_of_another_field_do_not_count() -> None:
    message = head("float32", 2) + packed(INT, [5, 6]) + varint(FLOAT, 3)
    assert tf.from_tensor_proto(message).tolist() == [0, 0]


def test_strings_are_read_and_the_last_is_repeated() -> None:
    message = head("string", 2, 2) + b"".join(bytes_field(STRING, s) for s in (b"a", b"", b"\0b"))
    x = tf.from_tensor_proto(message)
    assert x.dtype() == c10.string
    assert tuple(x.sizes()) == (2, 2)
    assert x.tolist() == [[b"a", b""], [b"\0b", b"\0b"]]
    assert list(caffe2.Tensor(x).data()) == [b"a", b"", b"\0b", b"\0b"]
    assert tf.from_tensor_proto(head("string", 2)).tolist() == [b"", b""]
    assert tf.from_tensor_proto(head("string", 0)).tolist() == []
    assert tf.from_tensor_proto(head("string") + bytes_field(STRING, b"x")).tolist() == b"x"
    with pytest.raises(tf.TensorProtoError, match="3 values"):
        tf.from_tensor_proto(head("string", 2) + bytes_field(STRING, b"a") * 3)


def test_strings_in_the_content_are_read() -> None:
    long = b"z" * 300
    data = b"\x01\x00\xac\x02" + b"a" + long
    assert tf.from_tensor_proto(head("string", 3) + content(data)).tolist() == [b"a", b"", long]
    for damaged in (b"\x01\x00", data[:-1], data + b"x", b"\xff" * 12, b"\x01\x80\x80"):
        with pytest.raises(tf.TensorProtoError):
            tf.from_tensor_proto(head("string", 3) + content(damaged))
