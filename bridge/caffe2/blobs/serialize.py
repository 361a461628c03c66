# SPDX-License-Identifier: Apache-2.0
"""Blobs as Caffe2's messages, byte for byte those that Caffe2 writes, and back.

Follows caffe2/core/blob_serialization.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from bridge.annotation import Any, Final
from bridge.c10 import Device, EnforceNotMet, TypeMeta
from bridge.c10 import string as string_type
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.wrapped_errors import wrap_error, wrapping
from bridge.caffe2.blobs.core import BlobCore
from bridge.caffe2.blobs.int8 import Int8TensorCPU
from bridge.caffe2.blobs.message import BlobMessage
from bridge.caffe2.blobs.object_messages import object_message, object_of
from bridge.caffe2.blobs.read_tensor import TENSOR_TYPES, int8_tensor_of, read_tensor
from bridge.caffe2.blobs.write_tensor import int8_message, require_message_size, tensor_messages
from bridge.wire.encoding import tagged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.blobs.core import BlobCore


# The default number of elements of a tensor in one record of a file.
DEFAULT_CHUNK_SIZE: Final = 1_000_000


def serialize(blob: BlobCore, name: str, caller: str, known_as: str | None = None) -> bytes:
    """Return a BlobProto with the value of `blob`, under the name `name`, as bytes.

    known_as: the blob's name in errors; None if it has none.

    Raises EnforceNotMet: the blob holds nothing, a tensor that is not allocated, elements or an
    object that Caffe2 has no message for, or more than one message may hold (2 GiB); also a
    MemoryError: there is not enough memory.
    """
    try:
        ((_, message),) = _messages(blob, name.encode(), None)
    except Exception as cause:
        raise _error(blob, known_as, caller, cause) from cause
    return message


def serialize_chunks(
    blob: BlobCore, name: str, chunk_size: int, caller: str, known_as: str | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the value of `blob` as records for a file: (key, BlobProto).

    A tensor is split into chunks of `chunk_size` elements, each written when it is asked for, with
    the keys ``name#%0``, ``name#%1`` and so on; an empty tensor is one chunk. Anything else is one
    record with the key `name`.

    Raises as `serialize`, and if `chunk_size` is less than one.
    """
    if chunk_size < 1:
        raise EnforceValueError(f"A chunk has one element or more, not {chunk_size}.", caller)
    try:
        yield from _messages(blob, name.encode(), chunk_size)
    except Exception as cause:
        raise _error(blob, known_as, caller, cause) from cause


def _error(blob: BlobCore, known_as: str | None, caller: str, cause: Exception) -> EnforceNotMet:
    return wrap_error(f"{blob._describe(known_as)}, which cannot be serialized", caller, cause)


def _messages(blob: BlobCore, name: bytes, chunk_size: int | None) -> Iterator[tuple[bytes, bytes]]:
    tensor = blob._tensor
    obj = blob._object
    if tensor is not None:
        yield from tensor_messages(tensor, name, chunk_size)
    elif blob._meta is string_type:
        require_message_size(len(obj) + len(name) + 32)
        yield name, tagged(1, name) + tagged(2, b"std::string") + tagged(4, obj)
    elif isinstance(obj, Int8TensorCPU):
        yield name, int8_message(obj, name)
    else:
        message = object_message(obj, name)
        if message is None:
            raise EnforceTypeError(
                "only tensors, strings, Int8 tensors, counters, indexes, maps, mutexes and cursors "
                "have a form in Caffe2's files"
            )
        yield name, message


def deserialize(blob: BlobCore, data: Any, subject: str, caller: str) -> None:
    """Make `blob` hold a copy of the contents of the BlobProto `data`, contiguous bytes.

    subject: the name of the blob in errors. Raises EnforceNotMet: the bytes are not a BlobProto,
    contradict themselves, or hold a type that does not exist here; the blob is then unchanged.
    """
    with wrapping(f"{subject} cannot be read from these bytes, and is unchanged", caller):
        read_blob(blob, BlobMessage(data), data)


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
