# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's TensorShapeProto as bytes with the attributes of the message; errors of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bridge.c10.errors import (
    EnforceBufferError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)
from bridge.tf.message import ShapeMessage
from bridge.wire.decoding import Source
from bridge.wire.encoding import tagged, varint_field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Numbers of tensor_shape.proto, TensorFlow 2.21.
_DIM, _UNKNOWN_RANK = 2, 3
_SIZE = 1


class TensorProtoError(EnforceBufferError, EnforceValueError):
    """Bytes that are not a valid TensorProto, or a tensor that a TensorProto cannot hold.

    It is an EnforceNotMet, a BufferError (there is no tensor to share) and a ValueError.
    """


def damaged(message: str, caller: str, error: EnforceNotMet) -> TensorProtoError:
    """Return the error of bytes that cannot be parsed as `message`; `error` is the parser's."""
    return TensorProtoError(
        f"The bytes are not a {message}, or are damaged. {error.message}",
        caller,
        condition=error.condition,
    )


class Dim(NamedTuple):
    """A dimension of a TensorShapeProto: its size, -1 if unknown, and its name."""

    size: int
    name: str = ""


class TensorShapeProto(bytes):
    """The bytes of a TensorShapeProto, with the attributes of the message.

    They equal the bytes of TensorFlow's ``tf.TensorShape(...).as_proto().SerializeToString()``.
    Iteration yields the sizes, so that TensorFlow's ``tf.TensorShape`` accepts one.

    >>> from bridge import tf
    >>> proto = tf.TensorShape([2, None]).as_proto()
    >>> proto[:4], [dim.size for dim in proto.dim], proto.unknown_rank
    (b'\\x12\\x02\\x08\\x02', [2, -1], False)
    """

    __slots__ = ()

    @classmethod
    def of(cls, dims: Sequence[int | None] | None) -> TensorShapeProto:
        """Return the message of `dims`, which are None for an unknown rank."""
        if dims is None:
            return cls(varint_field(_UNKNOWN_RANK, 1))
        return cls(b"".join(tagged(_DIM, _dim(-1 if size is None else size)) for size in dims))

    @property
    def dim(self) -> list[Dim]:
        """The dimensions in a new list.

        Raises TensorProtoError: the bytes are not a valid message.
        """
        shape = read_shape(self, "TensorShapeProto.dim")
        return [Dim(*pair) for pair in zip(shape.dims, shape.names, strict=True)]

    @property
    def unknown_rank(self) -> bool:
        """Whether the number of dimensions is unknown.

        Raises TensorProtoError: the bytes are not a valid message.
        """
        return read_shape(self, "TensorShapeProto.unknown_rank").unknown_rank

    def SerializeToString(self) -> bytes:
        """Return the bytes as plain ``bytes``."""
        return bytes(self)

    def __iter__(self) -> Iterator[Any]:
        dims = known_dims(read_shape(self, "TensorShapeProto"))
        if dims is None:
            raise EnforceTypeError(
                "A shape of unknown rank cannot be iterated over.",
                "TensorShapeProto",
                condition="not unknown_rank",
            )
        return iter(dims)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, bytes) and hasattr(other, "SerializeToString"):
            other = other.SerializeToString()
        return bytes.__eq__(self, other)

    __hash__ = bytes.__hash__


def _dim(size: int) -> bytes:
    # protobuf omits fields that are zero
    return varint_field(_SIZE, size) if size else b""


def message_bytes(proto: Any, caller: str) -> memoryview:
    """Return the bytes of a protobuf message object, or of a buffer, which is shared.

    Raises EnforceNotMet, also a TypeError: `proto` is neither.
    """
    if hasattr(proto, "SerializeToString") and not isinstance(proto, bytes):
        proto = proto.SerializeToString()
    try:
        return memoryview(proto).cast("B")
    except (TypeError, ValueError) as error:
        raise EnforceTypeError(
            f"A message is bytes, or an object with SerializeToString, not "
            f"{type(proto).__name__}: {error}",
            caller,
        ) from error


def read_shape(data: bytes | memoryview, caller: str) -> ShapeMessage:
    """Parse the bytes of a TensorShapeProto. Raises TensorProtoError: they are not one."""
    try:
        return ShapeMessage(Source(data))
    except EnforceValueError as error:
        raise damaged("TensorShapeProto", caller, error) from error


def known_dims(shape: ShapeMessage) -> tuple[int | None, ...] | None:
    """Return the sizes, None for each unknown one; None if the rank is unknown.

    Raises TensorProtoError: a size is less than -1.
    """
    if shape.unknown_rank:
        return None
    for index, size in enumerate(shape.dims):
        if size < -1:
            raise TensorProtoError(
                f"Dimension {index} has the size {size}; an unknown size is -1.",
                "tf.TensorShape",
                condition="size >= -1",
            )
    return tuple(None if size == -1 else size for size in shape.dims)
