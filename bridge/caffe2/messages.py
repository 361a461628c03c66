# SPDX-License-Identifier: Apache-2.0
"""Messages as users give them: of our classes, of another's, as bytes, or inside a core object.

protobuf is loaded at the first message, not with this module.
"""

from __future__ import annotations

from bridge.c10.errors import EnforceTypeError, EnforceValueError

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

__all__ = ["NoMessage", "as_message", "caffe2_pb2", "kind_of", "wire_bytes"]

_loaded: ModuleType | None = None


class NoMessage(EnforceTypeError, EnforceValueError):
    """What should be a message is none: a wrong type, which Caffe2 calls a wrong value."""


def caffe2_pb2() -> ModuleType:
    """Give the module of Caffe2's messages; the first call loads protobuf."""
    global _loaded
    if _loaded is None:
        from bridge.caffe2.proto import caffe2_pb2 as module

        _loaded = module
    return _loaded


def kind_of(obj: Any) -> str | None:
    """Say which message `obj` is, as ``"NetDef"``; None where it is no message."""
    return getattr(getattr(type(obj), "DESCRIPTOR", None), "name", None)


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'AEIO' else 'a'} {kind}"


def wire_bytes(obj: Any, kind: str, caller: str) -> bytes:
    """Give the bytes of the message `kind` that `obj` is or holds.

    `obj` is a message of any class with ``SerializeToString``, its bytes, or an object with
    ``Proto()``. Raises EnforceNotMet, also a TypeError: it is another message, or none of these
    (then also a ValueError).
    """
    if isinstance(obj, bytes):
        return obj
    if isinstance(obj, (bytearray, memoryview)):
        return bytes(obj)
    message = obj
    if not hasattr(message, "SerializeToString") and hasattr(message, "Proto"):
        message = message.Proto()
    serialize = getattr(message, "SerializeToString", None)
    if serialize is None or isinstance(message, type):
        hint = " Text is read by google.protobuf.text_format.Parse." if isinstance(obj, str) else ""
        raise NoMessage(
            f"{caller} takes {_a(kind)}: a message, its bytes, or a core object that "
            f"makes one, not {type(obj).__name__}.{hint}",
            "",
            caller,
        )
    name = kind_of(message)
    if name is not None and name != kind:
        raise EnforceTypeError(f"{caller} takes {_a(kind)}, not {_a(name)}.", "", caller)
    try:
        return bytes(serialize())
    except Exception as cause:
        raise EnforceValueError(f"The message cannot be serialized: {cause}", "", caller) from cause


def as_message(obj: Any, kind: str, caller: str) -> Any:
    """Give the message `kind`, of our class, that `obj` is or holds: itself, or a copy.

    Raises EnforceNotMet, also a TypeError or ValueError: it is none, or its bytes are damaged.
    """
    cls = getattr(caffe2_pb2(), kind)
    if type(obj) is cls:
        return obj
    data = wire_bytes(obj, kind, caller)
    message = cls()
    try:
        message.ParseFromString(data)
    except Exception as cause:
        raise EnforceValueError(
            f"These {len(data)} bytes are no {kind}: {cause}", "", caller
        ) from cause
    return message
