# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's TensorShapeProto: bytes that can be read as the message that they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bridge.c10.errors import EnforceTypeError
from bridge.tf.errors import TensorProtoError
from bridge.tf.fields import LENGTH, VARINT, as_int64, fields, tagged, varint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Dim", "TensorShapeProto", "merged_dims", "message_bytes"]

# Numbers of tensor_shape.proto, TensorFlow 2.21.
_DIM, _UNKNOWN_RANK = 2, 3
_SIZE, _NAME = 1, 2


class Dim(NamedTuple):
    """A dimension of a TensorShapeProto: its size, -1 where that is unknown, and its name."""

    size: int
    name: str = ""


class TensorShapeProto(bytes):
    """The bytes of a TensorShapeProto, with the attributes of the message.

    They are what TensorFlow's ``tf.TensorShape(...).as_proto().SerializeToString()`` gives.
    Iterating gives the dimensions, so that TensorFlow's ``tf.TensorShape`` takes one as it is.

    >>> from bridge import tf
    >>> proto = tf.TensorShape([2, None]).as_proto()
    >>> proto[:4], [dim.size for dim in proto.dim], proto.unknown_rank
    (b'\\x12\\x02\\x08\\x02', [2, -1], False)
    """

    __slots__ = ()

    @classmethod
    def of(cls, dims: Sequence[int | None] | None) -> TensorShapeProto:
        """The message of dimensions, None where unknown; of None where their number is."""
        if dims is None:
            return cls(varint(_UNKNOWN_RANK << 3 | VARINT) + b"\x01")
        return cls(b"".join(tagged(_DIM, _dim(-1 if size is None else size)) for size in dims))

    @property
    def dim(self) -> list[Dim]:
        """The dimensions. Raises TensorProtoError: the bytes are no message."""
        return _read([self])[0]

    @property
    def unknown_rank(self) -> bool:
        """Whether the number of dimensions is unknown; there are none then."""
        return _read([self])[1]

    def SerializeToString(self) -> bytes:
        """The plain bytes."""
        return bytes(self)

    def __iter__(self) -> Iterator[Any]:
        dims = merged_dims([self])
        if dims is None:
            raise EnforceTypeError(
                "A shape of unknown rank has no dimensions to go through.", "not unknown_rank"
            )
        return iter(dims)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, bytes) and hasattr(other, "SerializeToString"):
            other = other.SerializeToString()
        return bytes.__eq__(self, other)

    __hash__ = bytes.__hash__


def _dim(size: int) -> bytes:
    # protobuf leaves out what is zero
    return varint(_SIZE << 3 | VARINT) + varint(size) if size else b""


def message_bytes(proto: Any, caller: str) -> memoryview:
    """The bytes of a message: of a message of protobuf's, or a buffer of them, which is shared.

    Raises EnforceNotMet, also a TypeError: it is neither.
    """
    if hasattr(proto, "SerializeToString") and not isinstance(proto, bytes):
        proto = proto.SerializeToString()
    try:
        return memoryview(proto).cast("B")
    except (TypeError, ValueError) as error:
        raise EnforceTypeError(
            f"A message is bytes, or an object with SerializeToString, not "
            f"{type(proto).__name__}: {error}",
            "",
            caller,
        ) from error


def merged_dims(parts: Sequence[Any]) -> tuple[int | None, ...] | None:
    """The dimensions that the parts of one TensorShapeProto say together; None: unknown rank.

    Raises TensorProtoError: the bytes are no message, or a size is negative and not -1.
    """
    dims, unknown_rank = _read(parts)
    if unknown_rank:
        return None
    for index, dim in enumerate(dims):
        if dim.size < -1:
            raise TensorProtoError(
                f"Dimension {index} has the size {dim.size}; -1 says that one is unknown.",
                "size >= -1",
                "tf.TensorShape",
            )
    return tuple(None if dim.size == -1 else dim.size for dim in dims)


def _read(parts: Sequence[Any]) -> tuple[list[Dim], bool]:
    dims: list[Dim] = []
    unknown_rank = False
    for part in parts:
        data = memoryview(part)
        for number, wire, start, end in fields(data, 0, len(data)):
            if number == _DIM and wire == LENGTH:
                dims.append(_read_dim(data, start, end))
            elif number == _UNKNOWN_RANK and wire == VARINT:
                unknown_rank = bool(start)
    return dims, unknown_rank


def _read_dim(data: memoryview, start: int, end: int) -> Dim:
    size, name = 0, ""
    for number, wire, a, b in fields(data, start, end):
        if number == _SIZE and wire == VARINT:
            size = as_int64(a)
        elif number == _NAME and wire == LENGTH:
            name = bytes(data[a:b]).decode(errors="replace")
    return Dim(size, name)
