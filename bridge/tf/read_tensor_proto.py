# SPDX-License-Identifier: Apache-2.0
"""from_tensor_proto: read a tensor from a TensorProto."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bridge.at.factories import zeros
from bridge.at.tensor import Tensor
from bridge.c10.errors import EnforceValueError
from bridge.c10.raw_parts import byte_view, from_buffer, from_items
from bridge.c10.type_meta import TypeMeta
from bridge.tf.element_types import BY_NUMBER, STRING, Row, why_not
from bridge.tf.errors import TensorProtoError, damaged
from bridge.tf.message import MAX_NBYTES, MAX_RANK, ShapeMessage, TensorMessage
from bridge.tf.shape_proto import known_dims, message_bytes, read_shape
from bridge.tf.value_fields import numbers, strings, strings_of_content

_error = partial(TensorProtoError, caller="from_tensor_proto")


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
    values = numbers(parts.message, parts.data, row)
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
        items = strings(parts.message, numel)
        _require_room(len(items), numel, sizes)
        items += [items[-1] if items else b""] * (numel - len(items))
    else:
        items = strings_of_content(parts.content, numel)
    return Tensor._wrap(from_items(sizes, TypeMeta.Make("string"), items))


def _require_room(given: int, numel: int, sizes: list[int]) -> None:
    if given > numel:
        raise _error(f"Shape {sizes} has {numel} elements, but the message has {given} values.")
