# SPDX-License-Identifier: Apache-2.0
"""Messages of an old PyTorch's ``*_pb2`` modules, made by today's protobuf.

The code that an old protoc generated does not run on today's protobuf. It has the compiled
``.proto`` file, which is all that is needed.
"""

from __future__ import annotations

import ast
from importlib import import_module
from types import ModuleType


def serialized_file(source: str, name: str) -> bytes:
    """Return the compiled ``.proto`` file, a FileDescriptorProto, within a generated module.

    Raises ImportError: the source has none.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        callee = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        given = [one.value for one in node.keywords if one.arg == "serialized_pb"]
        if callee == "AddSerializedFile":
            given += node.args[:1]
        for value in given:
            if isinstance(value, ast.Constant) and isinstance(value.value, bytes):
                return value.value
            if isinstance(value, ast.Call) and value.args:  # _b('...'), for Python 2
                text = value.args[0]
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    return text.value.encode("latin-1")
    raise ImportError(f"{name} is not a module that protoc generated.", name=name)


def define_messages(module: ModuleType, serialized: bytes) -> None:
    """Define the messages and enums of a compiled ``.proto`` file in a module.

    The modules of the files that it imports are imported first, as ``caffe2.proto.caffe2_pb2`` for
    ``caffe2/proto/caffe2.proto``.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    from bridge.caffe2.proto.message_classes import define

    for name in FileDescriptorProto.FromString(serialized).dependency:
        import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    define(vars(module), serialized)
