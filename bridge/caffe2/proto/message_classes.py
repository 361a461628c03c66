# SPDX-License-Identifier: Apache-2.0
"""define: the classes of a compiled ``.proto`` file, under the names of a generated module.

All files of Caffe2 are in one descriptor pool, which is this package's own; see `caffe2_pb2`.
"""

from __future__ import annotations

import copyreg
import os
from importlib.util import find_spec
from types import ModuleType

from bridge.annotation import Any

_CHOICE = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"


def _protobuf() -> tuple[ModuleType, ModuleType]:
    """Return the modules of protobuf that make classes.

    Scripts of Caffe2's time ask for "cpp", with which protobuf from 4 on does not load: it has
    another compiled implementation, and takes that unless it is asked.
    """
    wanted = os.environ.get(_CHOICE)
    replaced = wanted == "cpp" and find_spec("google.protobuf.pyext._message") is None
    if replaced:
        del os.environ[_CHOICE]
    try:
        from google.protobuf import descriptor_pool, message_factory
    finally:
        if replaced:
            os.environ[_CHOICE] = "cpp"
    return descriptor_pool, message_factory


try:
    descriptor_pool, message_factory = _protobuf()
except ImportError as cause:
    raise ImportError(
        "Nets and operators of Caffe2 are messages of protobuf: pip install protobuf.",
        name="google.protobuf",
    ) from cause


__all__ = ["define"]

# The pool must live as long as its descriptors.
_pool: Any = descriptor_pool.DescriptorPool()

# protobuf before 4.22 has the factory object only, protobuf from 5 on the function only.
if hasattr(message_factory, "GetMessageClass"):
    _class_of: Any = message_factory.GetMessageClass
else:
    _old_factory: Any = message_factory.MessageFactory(_pool)
    _class_of = _old_factory.GetPrototype


def define(names: dict[str, Any], serialized: bytes) -> None:
    """Define the messages, enums and descriptors of a file in the globals `names` of a module.

    serialized: the file as a FileDescriptorProto. The files that it imports must have been defined.
    """
    # Returns the file in some implementations, None in others.
    _pool.AddSerializedFile(serialized)
    file = _pool.FindFileByName(_name_of(serialized))
    names["DESCRIPTOR"] = file
    for message in file.message_types_by_name.values():
        names[message.name] = _place(message, "", names)
    for enum in file.enum_types_by_name.values():
        names[enum.name] = _wrapper_class()(enum)
        names[f"_{enum.name.upper()}"] = enum
        for value in enum.values:
            names[value.name] = value.number


def _name_of(serialized: bytes) -> str:
    """Return the name of a file: the first field of its message."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    return FileDescriptorProto.FromString(serialized).name


def _wrapper_class() -> Any:
    """Return the class of the wrappers of enums, which is protobuf's own business."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    return type(FieldDescriptorProto.Type)


def _reduce(message: Any) -> Any:
    """Reduce a nested message as protobuf reduces others."""
    return type(message), (), message.__getstate__()


def _place(message: Any, prefix: str, names: dict[str, Any]) -> Any:
    """Return the class of a message, and of those within, the module and name pickle looks for."""
    made = _class_of(message)
    made.__module__ = names["__name__"]
    made.__qualname__ = f"{prefix}{message.name}"
    # Old generated modules have the descriptors too, as _TENSORPROTO and _TENSORPROTO_SEGMENT.
    flat = "_" + made.__qualname__.replace(".", "_").upper()
    names[flat] = message
    for enum in message.enum_types:
        names[f"{flat}_{enum.name.upper()}"] = enum
    # When protobuf unpickles nested messages, it looks them up in its default pool.
    if prefix:
        copyreg.pickle(made, _reduce)
    for nested in message.nested_types:
        setattr(made, nested.name, _place(nested, f"{made.__qualname__}.", names))
    return made
