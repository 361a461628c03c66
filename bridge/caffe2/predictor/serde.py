# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.predictor.serde``: messages as bytes."""

from __future__ import annotations

from bridge.annotation import Any

__all__ = ["deserialize_protobuf_struct", "serialize_protobuf_struct"]


def serialize_protobuf_struct(protobuf_struct: Any) -> bytes:
    """Return a message as bytes."""
    serialized: bytes = protobuf_struct.SerializeToString()
    return serialized


def deserialize_protobuf_struct(serialized_protobuf: bytes, struct_type: type) -> Any:
    """Return the message of the class `struct_type` that bytes hold."""
    message = struct_type()
    message.ParseFromString(serialized_protobuf)
    return message
