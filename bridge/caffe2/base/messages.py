# SPDX-License-Identifier: Apache-2.0
"""Messages from users: of these or other classes, as bytes, or inside a core object.

protobuf is loaded with the first message, not with this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from bridge.annotation import Any
from bridge.c10.errors import EnforceTypeError, EnforceValueError

_loaded: ModuleType | None = None


class InvalidMessageError(EnforceTypeError, EnforceValueError):
    """Not a message: a TypeError that is also a ValueError, which Caffe2 raises."""


def caffe2_pb2() -> ModuleType:
    """Return the module of Caffe2's messages; the first call loads protobuf."""
    global _loaded
    if _loaded is None:
        from bridge.caffe2.proto import caffe2_pb2 as module

        _loaded = module
    return _loaded


def kind_of(obj: Any) -> str | None:
    """Return the name of a message's type, as ``"NetDef"``; None: `obj` is not a message."""
    return getattr(getattr(type(obj), "DESCRIPTOR", None), "name", None)


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'AEIO' else 'a'} {kind}"


def wire_bytes(obj: Any, kind: str, caller: str) -> bytes:
    """Return the message `obj` of the type `kind` as bytes.

    `obj` is a message of any class with ``SerializeToString``, its bytes, or an object with
    ``Proto()``. Raises EnforceNotMet, also a TypeError: it is a message of another type, or (also a
    ValueError) not one of these.
    """
    if isinstance(obj, bytes):
        return obj
    if isinstance(obj, (bytearray, memoryview)):
        return bytes(obj)
    message = message_in(obj)
    serialize = getattr(message, "SerializeToString", None)
    if serialize is None or isinstance(message, type):
        hint = " Text is read by google.protobuf.text_format.Parse." if isinstance(obj, str) else ""
        raise InvalidMessageError(
            f"{caller} takes {_a(kind)}: a message, its bytes, or a core object that "
            f"makes one, not {type(obj).__name__}.{hint}",
            caller,
        )
    name = kind_of(message)
    if name is not None and name != kind:
        raise EnforceTypeError(f"{caller} takes {_a(kind)}, not {_a(name)}.", caller)
    try:
        data = serialize()
    except Exception as cause:
        raise EnforceValueError(f"The message cannot be serialized: {cause}", caller) from cause
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidMessageError(
            f"SerializeToString() of {type(message).__name__} returns {type(data).__name__}, not "
            "bytes.",
            caller,
        )
    return bytes(data)


def message_in(obj: Any) -> Any:
    """Return the message of a core object, from ``Proto()``; other objects unchanged."""
    # Looked up in the class: nets take unknown attributes for names of operators.
    return obj.Proto() if hasattr(type(obj), "Proto") else obj


def as_message(obj: Any, kind: str, caller: str) -> Any:
    """Return `obj` as a message of `caffe2_pb2`, of the type `kind`: itself, or else a copy.

    Raises EnforceNotMet, also a TypeError or ValueError: it is not such a message, or damaged.
    """
    cls = getattr(caffe2_pb2(), kind)
    message = message_in(obj)
    if type(message) is cls:
        return message
    data = wire_bytes(obj, kind, caller)
    message = cls()
    try:
        message.ParseFromString(data)
    except Exception as cause:
        raise EnforceValueError(
            f"These {len(data)} bytes are not {_a(kind)}: {cause}", caller
        ) from cause
    return message


def copied(obj: Any, kind: str, caller: str) -> Any:
    """Return `as_message` as a copy; raises as that."""
    message = getattr(caffe2_pb2(), kind)()
    message.CopyFrom(as_message(obj, kind, caller))
    return message


def check_text(message: Any, texts: Iterable[Any], caller: str) -> None:
    """Raise EnforceNotMet, also a ValueError, unless all of these strings of a message are UTF-8.

    protobuf returns strings that are not, which a message that was read may have, as bytes.
    """
    for text in texts:
        if not isinstance(text, str):
            raise EnforceValueError(
                f"A {kind_of(message)} has the name {text!r}, which is not UTF-8.", caller
            )


def set_fields(message: Any, caller: str, **fields: Any) -> None:
    """Set fields of a message; the values of repeated fields are appended.

    Raises EnforceNotMet, also a TypeError or ValueError: a field cannot hold its value. The fields
    before it are set.
    """
    for name, value in fields.items():
        plain = int(value) if isinstance(value, bool) else value  # protobuf refuses a bool
        try:
            field = getattr(message, name)
            if hasattr(field, "extend"):
                field.extend(plain)
            else:
                setattr(message, name, plain)
        except (TypeError, ValueError) as cause:
            kind = EnforceTypeError if isinstance(cause, TypeError) else EnforceValueError
            raise kind(
                f"{name} of a {kind_of(message)} cannot be {value!r}: {cause}", caller
            ) from cause
