# SPDX-License-Identifier: Apache-2.0
"""How objects that are no tensors stand in Caffe2's messages: who holds such objects says it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Write = Callable[[Any, Any], None]
    Read = Callable[[Any], Any]

__all__ = ["form_of", "object_of", "register_form"]

_writers: dict[type, Write] = {}
_readers: dict[bytes, Read] = {}
# Types that a built-in operator's module may know, which is loaded when the first of them is met.
_PREFIXES = (b"std::unique_ptr<", b"(std::unordered_map<")


def register_form(cls: type, names: list[bytes], write: Write, read: Read) -> None:
    """Have objects of a class stand in messages of these types.

    `write` is given an object and a BlobProto that has its name, `read` a BlobProto, of which it
    makes an object; it raises EnforceNotMet where that does not hold together.
    """
    _writers[cls] = write
    for name in names:
        _readers[name] = read


def form_of(held: Any, name: bytes) -> bytes | None:
    """Write an object as a message that calls it `name`; None: its class has no form."""
    write = _writers.get(type(held))
    if write is None:
        return None
    from bridge.caffe2.base.messages import caffe2_pb2

    message = caffe2_pb2().BlobProto()
    message.name = name.decode("utf-8", "surrogateescape")
    write(held, message)
    found: bytes = message.SerializeToString(deterministic=True)
    return found


def object_of(name: bytes, data: Callable[[], bytes]) -> Any:
    """Make the object of a message of type `name`; None: no such type is known.

    `data` gives the message. Raises EnforceNotMet, or what protobuf raises: it is none.
    """
    if name not in _readers and name.startswith(_PREFIXES):
        from bridge.caffe2.definitions.operator_types import RefreshRegisteredOperators

        RefreshRegisteredOperators()
    read = _readers.get(name)
    if read is None:
        return None
    from bridge.caffe2.base.messages import caffe2_pb2

    return read(caffe2_pb2().BlobProto.FromString(data()))
