# SPDX-License-Identifier: Apache-2.0
"""from_tensor_proto: a tensor out of TensorFlow's message."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridge.at.factories import zeros
from bridge.at.tensor import Tensor
from bridge.c10.errors import EnforceValueError
from bridge.c10.rebuild import byte_view, from_buffer, from_items
from bridge.c10.type_meta import TypeMeta
from bridge.tf.element_types import BY_NUMBER, STRING, Row, why_not
from bridge.tf.errors import TensorProtoError, damaged
from bridge.tf.message import MAX_RANK, ShapeMessage, TensorMessage
from bridge.tf.shape_proto import known_dims, message_bytes, read_shape
from bridge.tf.values import numbers, strings, strings_of_content

__all__ = ["MAX_NBYTES", "from_tensor_proto"]

# No message is larger, so no content; what repeats a value is held to the same.
MAX_NBYTES = (1 << 31) - 1


def from_tensor_proto(proto: Any, copy: bool = False) -> Tensor:
    """An at.Tensor of a TensorProto: a message of TensorFlow's, or its bytes.

    Numeric ``tensor_content`` is viewed where it stands in the bytes, which stay alive as long:
    read-only, as ``bytes`` are, and aligned as the message has it, which may be not at all (NumPy
    is told so and copes). ``copy=True`` copies it into memory of its own, writable and aligned.
    Values in the ``*_val`` fields are decoded into such memory either way: the last is repeated
    as often as the shape asks, and zeros stand where there is none. Strings make a tensor of type
    string. Of a message object, protobuf itself copies the content out.

    Raises
    ------
    TensorProtoError, which is an EnforceNotMet, a BufferError and a ValueError: the bytes are
        no message or contradict themselves, the shape is unknown or takes 2 GiB or more, the type
        is quantized, a resource, a variant or a reference.
    EnforceNotMet, also a TypeError: `proto` is no message.

    Follows Tensor::FromProto, tensorflow/core/framework/tensor.cc, and tf.make_ndarray,
    TensorFlow 2.21; what they cut off or round, more values than elements for one, is refused.

    >>> from bridge import tf
    >>> message = tf.make_tensor_proto([1.5, 2.5])
    >>> tf.from_tensor_proto(message).tolist(), tf.from_tensor_proto(message, copy=True).readonly
    ([1.5, 2.5], False)
    """
    if copy is not True and copy is not False:
        raise TypeError(f"copy is True or False, not {copy!r}.")
    parts = _parts_of_object(proto) or _parts_of_bytes(message_bytes(proto, "from_tensor_proto"))
    row, sizes = _row(parts.dtype), _sizes(parts.shape)
    numel = _numel(sizes, row)
    if row is STRING:
        return _of_strings(parts, sizes, numel)
    if parts.content is None:
        return _of_values(parts, row, sizes, numel)
    return _of_content(parts.content, row, sizes, numel, copy)


class _Parts(NamedTuple):
    """What a message says: its values are `content`, or where that is None in `message`."""

    dtype: int
    shape: ShapeMessage
    content: memoryview | None
    message: TensorMessage | None
    data: memoryview


def _parts_of_object(proto: Any) -> _Parts | None:
    """The parts of a message object that has content, which is copied out once; None for others."""
    content = None if isinstance(proto, bytes) else getattr(proto, "tensor_content", None)
    if not content or not hasattr(proto, "tensor_shape"):
        return None
    shape = read_shape(proto.tensor_shape.SerializeToString())
    return _Parts(int(proto.dtype), shape, memoryview(content), None, memoryview(b""))


def _parts_of_bytes(data: memoryview) -> _Parts:
    try:
        message = TensorMessage(data)
    except EnforceValueError as error:
        raise damaged("TensorProto", error) from error
    offset, nbytes = message.content or (0, 0)
    # Content of no bytes is none: what is zero, protobuf leaves out.
    content = data[offset : offset + nbytes] if nbytes else None
    return _Parts(message.dtype, message.shape, content, message, data)


def _row(number: int) -> Row:
    row = BY_NUMBER.get(number)
    if row is None:
        raise TensorProtoError(
            f"Elements of TensorFlow's type {number} are not read: {why_not(number)}.",
            "from_tensor_proto",
        )
    return row


def _sizes(shape: ShapeMessage) -> list[int]:
    dims = known_dims(shape)
    if dims is None or None in dims:
        raise TensorProtoError(
            f"The shape {'has an unknown rank' if dims is None else dims} in part, and a tensor "
            "has a known one.",
            "from_tensor_proto",
            condition="is_fully_defined()",
        )
    if len(dims) > MAX_RANK:
        raise TensorProtoError(
            f"The shape has {len(dims)} dimensions; TensorFlow's have at most {MAX_RANK}.",
            "from_tensor_proto",
        )
    return [size for size in dims if size is not None]


def _numel(sizes: list[int], row: Row) -> int:
    numel = 1
    for size in sizes:
        # Also where another size is zero: strides are counted with it.
        numel *= max(size, 1)
        if numel >= 1 << 63:
            break
    numel = 0 if 0 in sizes and numel < 1 << 63 else numel
    if numel * TypeMeta.Make(row.name).itemsize > MAX_NBYTES:
        raise TensorProtoError(
            f"A shape of {sizes} takes more bytes than a message may have, {MAX_NBYTES}.",
            "from_tensor_proto",
        )
    return numel


def _of_content(content: memoryview, row: Row, sizes: list[int], numel: int, copy: bool) -> Tensor:
    dtype = TypeMeta.Make(row.name)
    nbytes = len(content)
    if nbytes != numel * dtype.itemsize:
        raise TensorProtoError(
            f"A shape of {sizes} takes {numel * dtype.itemsize} bytes of {row.name}, and the "
            f"content has {nbytes}.",
            "from_tensor_proto",
        )
    if row.name == "bool" and np.frombuffer(content, np.uint8).max() > 1:
        raise TensorProtoError(
            "The content has bytes that are neither 0 nor 1, which no bool is.",
            "from_tensor_proto",
        )
    tensor = Tensor._wrap(from_buffer(content, sizes, dtype, misaligned=True))
    return tensor.clone() if copy else tensor


def _of_values(parts: _Parts, row: Row, sizes: list[int], numel: int) -> Tensor:
    assert parts.message is not None
    values = numbers(parts.message, parts.data, row)
    tensor = zeros(sizes, dtype=row.name)
    width = 2 if row.name.startswith("complex") else 1
    if len(values) % width:
        raise TensorProtoError(
            f"{len(values)} numbers are no whole number of pairs, real and imaginary.",
            "from_tensor_proto",
        )
    given = len(values) // width
    _require_room(given, numel, sizes)
    if given:
        # The elements as plain bits, which NumPy has for every type.
        bits = np.frombuffer(memoryview(byte_view(tensor.unsafeGetTensorImpl())), row.stored)
        bits = bits.reshape(numel, width)
        bits[:given] = values.reshape(given, width)
        bits[given:] = bits[given - 1]
    return tensor


def _of_strings(parts: _Parts, sizes: list[int], numel: int) -> Tensor:
    if parts.content is None:
        assert parts.message is not None
        items = strings(parts.message, numel)
        _require_room(len(items), numel, sizes)
        items += [items[-1] if items else b""] * (numel - len(items))
    else:
        items = strings_of_content(parts.content, numel)
    return Tensor._wrap(from_items(sizes, TypeMeta.Make("string"), items))


def _require_room(given: int, numel: int, sizes: list[int]) -> None:
    if given > numel:
        raise TensorProtoError(
            f"A shape of {sizes} has {numel} elements, and the message {given} values.",
            "from_tensor_proto",
        )
