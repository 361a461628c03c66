# SPDX-License-Identifier: Apache-2.0
"""from_tensor_proto: read a tensor from a TensorProto."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bridge.at.factories import empty, zeros
from bridge.at.tensor import Tensor
from bridge.c10.errors import EnforceValueError
from bridge.c10.raw_parts import byte_view, from_buffer, from_items, items_of
from bridge.c10.type_meta import TypeMeta
from bridge.tf.element_types import BY_NUMBER, STRING, Row, why_not
from bridge.tf.message import MAX_NBYTES, MAX_RANK, ShapeMessage, TensorMessage
from bridge.tf.shape_proto import (
    TensorProtoError,
    damaged,
    known_dims,
    message_bytes,
    read_shape,
)
from bridge.wire.encoding import length_head

_error = partial(TensorProtoError, caller="from_tensor_proto")
# A field of varints of 64 bits.
_INT64_VAL = 10


def from_tensor_proto(proto: Any, copy: bool = False) -> Tensor:
    """Return the at.Tensor of a TensorProto, given as a message of TensorFlow or as its bytes.

    Numeric ``tensor_content`` is shared with the bytes, which the tensor keeps alive. Such
    a tensor is read-only, and its address may not be a multiple of the element size, which NumPy
    handles. ``copy=True`` copies the content into new memory, writable and aligned. Values of the
    ``*_val`` fields are always decoded into new memory; the last value is repeated to fill the
    shape, and without values all elements are zero. Strings become a tensor of type string. From
    a message object, protobuf itself copies the content.

    Raises TensorProtoError, which is an EnforceNotMet, a BufferError and a ValueError: the bytes
    are not a valid message or contradict themselves; the shape is not fully known or takes 2 GiB or
    more; the type is quantized, a resource, a variant or a reference. EnforceNotMet, also a
    TypeError: `proto` is neither a message nor bytes. TypeError: `copy` is not a bool.

    Follows Tensor::FromProto, tensorflow/core/framework/tensor.cc, and tf.make_ndarray,
    TensorFlow 2.21. Where these truncate or round, as with more values than elements, it raises.

    >>> from bridge import tf
    >>> message = tf.make_tensor_proto([1.5, 2.5])
    >>> tf.from_tensor_proto(message).tolist(), tf.from_tensor_proto(message, copy=True).readonly
    ([1.5, 2.5], False)
    """
    if copy is not True and copy is not False:
        raise TypeError(f"copy must be True or False, not {copy!r}.")
    parts = _parts_of_object(proto) or _parts_of_bytes(message_bytes(proto, "from_tensor_proto"))
    row, sizes = _row(parts.dtype), _sizes(parts.shape)
    numel = _numel(sizes, row)
    if row is STRING:
        return _of_strings(parts, sizes, numel)
    if parts.content is None:
        return _of_values(parts, row, sizes, numel)
    return _of_content(parts.content, row, sizes, numel, copy)


class _Parts(NamedTuple):
    """The fields of a message. If `content` is None, the values are in `message`, over `data`."""

    dtype: int
    shape: ShapeMessage
    content: memoryview | None
    message: TensorMessage | None
    data: memoryview


def _parts_of_object(proto: Any) -> _Parts | None:
    """Return the parts of a message object with content, which is copied once; None for others."""
    content = None if isinstance(proto, bytes) else getattr(proto, "tensor_content", None)
    if not content or not hasattr(proto, "tensor_shape"):
        return None
    shape = read_shape(proto.tensor_shape.SerializeToString(), "from_tensor_proto")
    return _Parts(int(proto.dtype), shape, memoryview(content), None, memoryview(b""))


def _parts_of_bytes(data: memoryview) -> _Parts:
    try:
        message = TensorMessage(data)
    except EnforceValueError as error:
        raise damaged("TensorProto", "from_tensor_proto", error) from error
    offset, nbytes = message.content or (0, 0)
    # protobuf does not tell empty content from absent content.
    content = data[offset : offset + nbytes] if nbytes else None
    return _Parts(message.dtype, message.shape, content, message, data)


def _row(number: int) -> Row:
    row = BY_NUMBER.get(number)
    if row is None:
        raise _error(f"Elements of TensorFlow's type {number} cannot be read: {why_not(number)}.")
    return row


def _sizes(shape: ShapeMessage) -> list[int]:
    dims = known_dims(shape)
    if dims is None or None in dims:
        raise _error(
            "The shape is not fully known: "
            f"{'it has an unknown rank' if dims is None else list(dims)}.",
            condition="is_fully_defined()",
        )
    if len(dims) > MAX_RANK:
        raise _error(f"The shape has {len(dims)} dimensions; TensorFlow allows at most {MAX_RANK}.")
    return [size for size in dims if size is not None]


def _numel(sizes: list[int], row: Row) -> int:
    numel = 1
    for size in sizes:
        # A size of zero counts as one here: the strides must fit too.
        numel *= max(size, 1)
        if numel >= 1 << 63:
            break
    numel = 0 if 0 in sizes and numel < 1 << 63 else numel
    if numel * TypeMeta.Make(row.name).itemsize > MAX_NBYTES:
        raise _error(
            f"A tensor of shape {sizes} takes more bytes than a message may have, {MAX_NBYTES}."
        )
    return numel


def _of_content(content: memoryview, row: Row, sizes: list[int], numel: int, copy: bool) -> Tensor:
    dtype = TypeMeta.Make(row.name)
    nbytes = len(content)
    if nbytes != numel * dtype.itemsize:
        raise _error(
            f"Shape {sizes} of {row.name} takes {numel * dtype.itemsize} bytes, but the content "
            f"has {nbytes}."
        )
    if row.name == "bool" and np.frombuffer(content, np.uint8).max() > 1:
        raise _error("The content of a bool tensor has bytes that are neither 0 nor 1.")
    tensor = Tensor._wrap(from_buffer(content, sizes, dtype, misaligned=True))
    return tensor.clone() if copy else tensor


def _of_values(parts: _Parts, row: Row, sizes: list[int], numel: int) -> Tensor:
    assert parts.message is not None
    values = _numbers(parts.message, parts.data, row)
    tensor = zeros(sizes, dtype=row.name)
    width = 2 if row.name.startswith("complex") else 1
    if len(values) % width:
        raise _error(f"{len(values)} numbers do not form pairs of a real and an imaginary part.")
    given = len(values) // width
    _require_room(given, numel, sizes)
    if given:
        # As plain bits: NumPy lacks some of the element types.
        bits = np.frombuffer(memoryview(byte_view(tensor.unsafeGetTensorImpl())), row.stored)
        bits = bits.reshape(numel, width)
        bits[:given] = values.reshape(given, width)
        bits[given:] = bits[given - 1]
    return tensor


def _of_strings(parts: _Parts, sizes: list[int], numel: int) -> Tensor:
    if parts.content is None:
        assert parts.message is not None
        items = _strings(parts.message, numel)
        _require_room(len(items), numel, sizes)
        items += [items[-1] if items else b""] * (numel - len(items))
    else:
        items = _strings_of_content(parts.content, numel)
    return Tensor._wrap(from_items(sizes, TypeMeta.Make("string"), items))


def _require_room(given: int, numel: int, sizes: list[int]) -> None:
    if given > numel:
        raise _error(f"Shape {sizes} has {numel} elements, but the message has {given} values.")


# The values of the `*_val` fields, and strings in the content.


def _numbers(message: TensorMessage, data: memoryview, row: Row) -> np.ndarray[Any, Any]:
    """Return the values of a numeric type as a 1-D array of their bits (of type ``row.stored``).

    `data` is the bytes of the message. Complex numbers are two values each. Raises
    TensorProtoError: the type cannot hold a value.
    """
    if row.coding == "bytes":
        offset, nbytes = message.float8 or (0, 0)
        return np.frombuffer(data[offset : offset + nbytes], np.uint8)
    if row.coding == "varint":
        return _narrowed(_read(message, row.field, "int64"), row)
    floats = _read(message, row.field, "float32" if row.stored == "<u4" else "float64")
    return floats.view(row.stored)


def _strings(message: TensorMessage, numel: int) -> list[bytes]:
    """Return the values of a message of strings, in a new list.

    If there are more than `numel`, which is an error of the caller's to report, they are not
    decoded: as many empty strings are returned.
    """
    payload = message.values(STRING.field)
    if payload is None or payload.n > numel:
        return [b""] * (payload.n if payload else 0)
    impl = from_items([payload.n], TypeMeta.Make("string"), [b""] * payload.n)
    payload.into(impl, 0)
    return items_of(impl)


def _strings_of_content(content: memoryview, numel: int) -> list[bytes]:
    """Return the strings of a tensor_content: varints of the lengths, then the bytes of all.

    Raises TensorProtoError: the bytes are not `numel` strings in that format. Follows
    port::EncodeStringList, tensorflow/core/platform/tensor_coding.cc, TensorFlow 2.21.
    """
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) < 0x80)[:numel]
    begin = int(ends[-1]) + 1 if len(ends) else 0
    # Consecutive varints are the body of a packed field.
    packed = length_head(_INT64_VAL, begin) + bytes(content[:begin])
    lengths = _read(TensorMessage(packed), _INT64_VAL, "int64").tolist()
    if len(lengths) != numel or min(lengths, default=0) < 0 or sum(lengths) != len(content) - begin:
        raise _error(
            f"The content is not {numel} strings: {len(lengths)} lengths add up to "
            f"{sum(lengths)} bytes, but {len(content) - begin} follow.",
        )
    items = []
    for length in lengths:
        items.append(bytes(content[begin : begin + length]))
        begin += length
    return items


def _read(message: TensorMessage, field: int, dtype: str) -> np.ndarray[Any, Any]:
    """Return all values of a field as a new 1-D array."""
    payload = message.values(field)
    values = empty([payload.n if payload else 0], dtype=dtype)
    if payload is not None:
        payload.into(values.unsafeGetTensorImpl(), 0)
    return values.numpy()


def _narrowed(values: np.ndarray[Any, Any], row: Row) -> np.ndarray[Any, Any]:
    """Convert int64 values to the type of `row`. Raises TensorProtoError: one is out of range."""
    if row.stored == "?":
        truth: np.ndarray[Any, Any] = values != 0
        return truth
    if row.stored in ("i8", "u8"):
        return values.view(row.stored)
    # protobuf's int32 and uint32 are the low 32 bits of their varint
    numbers = values.astype(np.uint32 if row.stored == "u4" else np.int32)
    if len(numbers) and not row.low <= numbers.min() <= numbers.max() <= row.high:
        low, high = int(numbers.min()), int(numbers.max())
        raise _error(
            f"Values of {row.name} range from {row.low} to {row.high}, but the message has "
            f"{low if low < row.low else high}.",
        )
    if row.narrow:
        numbers &= row.high - row.low
    return numbers.astype(row.stored)
