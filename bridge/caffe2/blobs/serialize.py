# SPDX-License-Identifier: Apache-2.0
"""What a blob holds, as the bytes that Caffe2 writes for it.

Byte for byte those of Caffe2: fields in the order of their numbers, `device_detail` and `segment`
always there, dims not packed, nothing else that is at its default. Values are written once, from
the tensor's memory into the `bytes` that are given back (`packing`); what is around them is short.

Follows caffe2/core/blob_serialization.cc and int8_serialization.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from bridge.at import Tensor as AtTensor
from bridge.c10 import DeviceType, EnforceNotMet
from bridge.c10 import string as string_type
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.data_types import FIELDS, NUMBERS, DataType
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.blobs.int8 import Int8TensorCPU
from bridge.caffe2.blobs.object_forms import form_of
from bridge.caffe2.tensor.tensor import Tensor
from bridge.wire.encoding import length_head, tagged, varint, varint_field
from bridge.wire.packing import joined, packed_nbytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from bridge.caffe2.blobs.blob import Blob

__all__ = ["DEFAULT_CHUNK_SIZE", "serialize", "serialize_chunks"]

# Elements of a tensor that go into one record of a file, unless somebody says otherwise.
DEFAULT_CHUNK_SIZE: Final = 1_000_000

# The numbers of TensorProto's fields that hold values; strings (0) have a tag each.
_FIELD_NUMBERS = {
    "float_data": 3,
    "int32_data": 4,
    "string_data": 0,
    "double_data": 9,
    "int64_data": 10,
}
# Fields from this one on come after the name and the device.
_AFTER_NAME = 7
_INT8_TYPES = ("int32", "uint8")
_MAX_MESSAGE = 2**31 - 1  # bytes; protobuf reads no longer ones


def serialize(blob: Blob, name: str, caller: str, known_as: str | None = None) -> bytes:
    """Write what `blob` holds as one message that calls it `name`.

    `known_as` is what an error calls the blob, None if it has no name.

    Raises EnforceNotMet: it holds nothing, elements or an object that Caffe2 has no form for, a
    tensor that is not allocated, or more than one message may hold (2 GiB); or, a MemoryError too,
    there is no room.
    """
    try:
        ((_, message),) = _messages(blob, name.encode(), None)
    except Exception as cause:
        raise _failure(blob, known_as, caller, cause) from cause
    return message


def serialize_chunks(
    blob: Blob, name: str, chunk_size: int, caller: str, known_as: str | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """Write what `blob` holds as records for a file: (key, message) one after the other.

    A tensor is cut into chunks of `chunk_size` elements, each made when it is asked for, with the
    keys ``name#%0``, ``name#%1`` and so on; one without elements is one chunk. What else a blob
    holds is one record with the key `name`.

    Raises as `serialize`, and if `chunk_size` is less than one.
    """
    if chunk_size < 1:
        raise EnforceValueError(f"A chunk has one element or more, not {chunk_size}.", caller)
    try:
        yield from _messages(blob, name.encode(), chunk_size)
    except Exception as cause:
        raise _failure(blob, known_as, caller, cause) from cause


def _failure(blob: Blob, known_as: str | None, caller: str, cause: Exception) -> EnforceNotMet:
    return wrap_error(f"{blob._called(known_as)}, which cannot be serialized", caller, cause)


def _messages(blob: Blob, name: bytes, chunk_size: int | None) -> Iterator[tuple[bytes, bytes]]:
    tensor = blob._tensor
    held = blob._object
    if tensor is not None:
        yield from _tensor_messages(tensor, name, chunk_size)
    elif blob._meta is string_type:
        yield name, _string_message(held, name)
    elif isinstance(held, Int8TensorCPU):
        yield name, _int8_message(held, name)
    else:
        message = form_of(held, name)
        if message is None:
            raise EnforceTypeError(
                "only tensors, strings, Int8 tensors, counters, indexes, maps, mutexes and cursors "
                "have a form in Caffe2's files"
            )
        yield name, message


def _tensor_messages(
    tensor: Tensor, name: bytes, chunk_size: int | None
) -> Iterator[tuple[bytes, bytes]]:
    if not tensor.defined():
        raise EnforceTypeError("it has neither type nor sizes")
    numel = tensor.numel()
    device = _device_detail(tensor)
    source = _on_cpu(tensor)
    if chunk_size is None or numel == 0:
        chunk_size = max(numel, 1)
    for index, begin in enumerate(range(0, max(numel, 1), chunk_size)):
        n = min(chunk_size, numel - begin)
        yield b"%s#%%%d" % (name, index), _tensor_message(source, name, device, begin, n)


def _tensor_message(tensor: Tensor, name: bytes, device: bytes, begin: int, n: int) -> bytes:
    """Write the elements [begin, begin + n) of a contiguous tensor on the CPU."""
    impl = tensor.unsafeGetTensorImpl()
    number, field = _number_and_field(tensor)
    nbytes = packed_nbytes(impl, begin, n) if number else 0
    head = _dims(tensor) + b"\x10" + varint(number)
    payload_tag = length_head(field, nbytes) if field and nbytes else b""
    described = tagged(7, name) + tagged(8, device)
    segment = tagged(11, b"\x08" + varint(begin) + b"\x10" + varint(begin + n))
    if field < _AFTER_NAME:
        head += payload_tag
        tail = described + segment
    else:
        head += described + payload_tag
        tail = segment
    size = len(head) + nbytes + len(tail)
    head = tagged(1, name) + tagged(2, b"Tensor") + length_head(3, size) + head
    _require_message(len(head) + nbytes + len(tail))
    return joined(head, impl, begin, n, nbytes, tail) if number else head + tail


def _number_and_field(tensor: Tensor) -> tuple[int, int]:
    dtype = tensor.dtype()
    if not dtype:
        if tensor.numel():
            raise EnforceNotMet("it is a tensor without elements yet: call mutable_data(T) first")
        # Caffe2 writes it, and reads it back as float32.
        return DataType.UNDEFINED, 0
    number = NUMBERS.get(dtype)
    if number is None:
        raise EnforceTypeError(
            f"Caffe2's files have no elements of {dtype}; convert the tensor to one of "
            f"{', '.join(meta.name for meta in NUMBERS)}"
        )
    return number, _FIELD_NUMBERS[FIELDS[number]]


def _string_message(value: bytes, name: bytes) -> bytes:
    _require_message(len(value) + len(name) + 32)
    return tagged(1, name) + tagged(2, b"std::string") + tagged(4, value)


def _int8_message(held: Int8TensorCPU, name: bytes) -> bytes:
    tensor = _on_cpu(held.t)
    dtype = tensor.dtype()
    if not dtype or dtype.name not in _INT8_TYPES:
        raise EnforceTypeError(f"an Int8 tensor has elements of int32 or uint8, not of {dtype}")
    impl = tensor.unsafeGetTensorImpl()
    n = tensor.numel()
    nbytes = packed_nbytes(impl, 0, n)
    # precision 8 and is_signed false: what Caffe2 writes, whatever the elements are
    head = _dims(tensor) + b"\x10\x08"
    head += b"\x19" + struct.pack("<d", held.scale)
    head += b"\x21" + struct.pack("<d", held.zero_point) + b"\x28\x00"
    if nbytes:
        head += length_head(6, nbytes)
    tail = tagged(7, name) + b"\x40" + varint(NUMBERS[dtype])
    size = len(head) + nbytes + len(tail)
    head = tagged(1, name) + tagged(2, b"Int8TensorCPU") + length_head(5, size) + head
    _require_message(len(head) + nbytes + len(tail))
    return joined(head, impl, 0, n, nbytes, tail)


def _on_cpu(tensor: Tensor) -> Tensor:
    """Return the tensor itself, or a copy where it is not contiguous or not in the CPU's memory."""
    if not tensor.is_contiguous():
        tensor = Tensor(AtTensor(tensor).contiguous())
    if tensor.GetDeviceType() == DeviceType.CPU or not tensor.storage_initialized():
        return tensor
    return Tensor(tensor, "cpu")


def _device_detail(tensor: Tensor) -> bytes:
    """Write where the tensor is as a DeviceOption, which is always there and says its type."""
    device = tensor.GetDevice()
    if device.type in (DeviceType.CPU, DeviceType.CUDAHost):
        return b"\x08\x00"
    if device.type == DeviceType.CUDA:
        return b"\x08\x01\x10" + varint(max(device.index, 0))
    raise EnforceTypeError(f"Caffe2's files have no device like {device}; copy it to the CPU")


def _require_message(nbytes: int) -> None:
    if nbytes > _MAX_MESSAGE:
        raise EnforceValueError(
            f"it takes {nbytes} bytes, and protobuf reads no message of more than {_MAX_MESSAGE}; "
            "the Save operator writes large tensors in chunks"
        )


def _dims(tensor: Tensor) -> bytes:
    return b"".join(varint_field(1, size) for size in tensor.sizes())
