# SPDX-License-Identifier: Apache-2.0
"""Deserializing blobs from messages that Caffe2 and others wrote.

Follows caffe2/core/blob_serialization.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10 import Device, TypeMeta
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.wrapped_errors import wrap_error
from bridge.caffe2.blobs.core import BlobCore
from bridge.caffe2.blobs.message import BlobMessage
from bridge.caffe2.blobs.object_messages import object_of
from bridge.caffe2.blobs.read_tensor import TENSOR_TYPES, int8_tensor_of, read_tensor


def deserialize(blob: BlobCore, data: Any, subject: str, caller: str) -> None:
    """Make `blob` hold a copy of the contents of the BlobProto `data`, contiguous bytes.

    subject: the name of the blob in errors. Raises EnforceNotMet: the bytes are not a BlobProto,
    contradict themselves, or hold a type that does not exist here; the blob is then unchanged.
    """
    try:
        read_blob(blob, BlobMessage(data), data)
    except Exception as cause:
        raise wrap_error(
            f"{subject} cannot be read from these bytes, and is unchanged", caller, cause
        ) from cause


def read_blob(
    blob: BlobCore, message: BlobMessage, data: Any, device: Device | None = None
) -> None:
    """Make `blob` hold a copy of the contents of `message`, which was read from `data`.

    device: where a tensor goes; None: the device in the message. Raises as `deserialize`, or the
    error that stopped it; the blob is then unchanged.
    """
    if message.type in TENSOR_TYPES:
        read_tensor(blob, message, device)
    elif message.type == b"std::string":
        blob._set_string(message.content)
    else:
        if message.type == b"Int8TensorCPU":
            obj: Any = int8_tensor_of(message)
        else:
            obj = object_of(message.type, data)
        if obj is None:
            raise EnforceTypeError(
                f"they are of the type {message.type[:80]!r}; blobs can hold tensors, "
                "strings, Int8 tensors, counters, indexes, maps, mutexes and cursors"
            )
        blob._set_object(obj, TypeMeta.Make(type(obj)))
