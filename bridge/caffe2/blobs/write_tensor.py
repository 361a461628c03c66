# SPDX-License-Identifier: Apache-2.0
"""Tensors as Caffe2's messages, byte for byte those that Caffe2 writes.

Fields are in the order of their numbers; `device_detail` and `segment` are always present, dims
are not packed, and nothing else is written that has its default value. Values are written once,
from the tensor's memory into the resulting `bytes` (`bridge.wire.encoding`).

Follows caffe2/core/blob_serialization.cc and int8_serialization.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from bridge.at import Tensor as AtTensor
from bridge.c10 import DeviceType, EnforceNotMet, TypeMeta
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.data_types import FIELDS, NUMBERS, DataType
from bridge.caffe2.base.device_option import CPU, CUDA
from bridge.caffe2.blobs.int8 import Int8TensorCPU
from bridge.caffe2.blobs.objects import Record
from bridge.caffe2.tensor.tensor import Tensor
from bridge.wire.encoding import (
    joined,
    length_head,
    packed_nbytes,
    tagged,
    varint,
    varint_field,
)

# The numbers of TensorProto's fields that hold values; 0 for strings, which have a tag each.
_FIELD_NUMBERS = {
    "float_data": 3,
    "int32_data": 4,
    "string_data": 0,
    "double_data": 9,
    "int64_data": 10,
}
# The fields that have the elements as they are in memory.
_AS_IN_MEMORY = (_FIELD_NUMBERS["float_data"], _FIELD_NUMBERS["double_data"])
# Fields with this number and higher ones follow the name and the device.
_AFTER_NAME = 7
_INT8_TYPES = ("int32", "uint8")
_RECORD = TypeMeta.Make(Record)
# The message of a Record, whose columns Caffe2 does not write.
RECORD_TYPE = b"std::shared_ptr<std::vector<TensorCPU>>"
_RECORD_MESSAGE = tagged(1, b"") + tagged(2, RECORD_TYPE) + tagged(4, b"")
_MAX_MESSAGE = 2**31 - 1  # bytes; protobuf does not read longer messages


def tensor_messages(
    tensor: Tensor, name: bytes, chunk_size: int | None
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of a tensor, (key, BlobProto), each of `chunk_size` elements.

    None: one record of all elements. Raises EnforceNotMet: the tensor is undefined or not
    allocated, its type or device does not exist in Caffe2's files, or a message is too long.
    """
    if not tensor.defined():
        raise EnforceTypeError("it has neither type nor sizes")
    numel = tensor.numel()
    device = _device_detail(tensor)
    source = _contiguous_on_cpu(tensor)
    if chunk_size is None or numel == 0:
        chunk_size = max(numel, 1)
    dims = _dims(tensor)
    for index, begin in enumerate(range(0, max(numel, 1), chunk_size)):
        n = min(chunk_size, numel - begin)
        yield (
            b"%s#%%%d" % (name, index),
            _tensor_message(source, begin, dims, name, device, begin, n),
        )


def chunk_message(
    values: Tensor, sizes: Sequence[int], name: bytes, begin: int
) -> tuple[bytes | memoryview, ...]:
    """Return the BlobProto of one chunk of a tensor of `sizes`, whose other elements are elsewhere.

    It is in parts, to be written one after the other; one of them may be the memory of `values`.
    values: the elements from `begin` on, contiguous and on the CPU. Raises as `tensor_messages`.
    """
    dims = b"".join(varint_field(1, size) for size in sizes)
    device = _device_detail(values)
    n = values.numel()
    _, field = _number_and_field(values)
    if n and field in _AS_IN_MEMORY:
        head, nbytes, tail = _frame(values, 0, dims, name, device, begin, n)
        elements = memoryview(values).cast("B")
        assert elements.nbytes == nbytes
        return head, elements, tail
    return (_tensor_message(values, 0, dims, name, device, begin, n),)


def _tensor_message(
    values: Tensor, at: int, dims: bytes, name: bytes, device: bytes, begin: int, n: int
) -> bytes:
    """Return the BlobProto of the elements [begin, begin + n) of a tensor with these `dims`.

    They are elements of `values`, contiguous and on the CPU, from its element `at` on.
    """
    head, nbytes, tail = _frame(values, at, dims, name, device, begin, n)
    if not values.dtype() or values.dtype() is _RECORD:
        return head + tail
    return joined(head, values.unsafeGetTensorImpl(), at, n, nbytes, tail)


def _frame(
    values: Tensor, at: int, dims: bytes, name: bytes, device: bytes, begin: int, n: int
) -> tuple[bytes, int, bytes]:
    """Return the bytes before the elements, the number of theirs, and the bytes after them."""
    impl = values.unsafeGetTensorImpl()
    number, field = _number_and_field(values)
    nbytes = packed_nbytes(impl, at, n) if number else 0
    head = dims + b"\x10" + varint(number)
    payload_tag = length_head(field, nbytes) if field and nbytes else b""
    if values.dtype() is _RECORD:
        head += tagged(6, _RECORD_MESSAGE) * n
    name_and_device = tagged(7, name) + tagged(8, device)
    segment = tagged(11, b"\x08" + varint(begin) + b"\x10" + varint(begin + n))
    if field < _AFTER_NAME:
        head += payload_tag
        tail = name_and_device + segment
    else:
        head += name_and_device + payload_tag
        tail = segment
    size = len(head) + nbytes + len(tail)
    head = tagged(1, name) + tagged(2, b"Tensor") + length_head(3, size) + head
    require_message_size(len(head) + nbytes + len(tail))
    return head, nbytes, tail


def _number_and_field(tensor: Tensor) -> tuple[int, int]:
    """Return Caffe2's number of the element type and the number of the field for its values."""
    dtype = tensor.dtype()
    if not dtype:
        if tensor.numel():
            raise EnforceNotMet("it is a tensor without elements yet: call mutable_data(T) first")
        # Caffe2 writes it, and reads it back as float32.
        return DataType.UNDEFINED, 0
    if dtype is _RECORD:
        return DataType.UNDEFINED, 0
    number = NUMBERS.get(dtype.name)
    if number is None:
        raise EnforceTypeError(
            f"Caffe2's files have no elements of {dtype}; convert the tensor to one of "
            f"{', '.join(NUMBERS)}"
        )
    return number, _FIELD_NUMBERS[FIELDS[number]]


def int8_message(quantized: Int8TensorCPU, name: bytes) -> bytes:
    """Return the BlobProto of a quantized tensor.

    Raises EnforceNotMet: elements of another type than int32 and uint8, or too many.
    """
    tensor = _contiguous_on_cpu(quantized.t)
    dtype = tensor.dtype()
    if not dtype or dtype.name not in _INT8_TYPES:
        raise EnforceTypeError(f"an Int8 tensor has elements of int32 or uint8, not of {dtype}")
    impl = tensor.unsafeGetTensorImpl()
    n = tensor.numel()
    nbytes = packed_nbytes(impl, 0, n)
    # Caffe2 writes precision 8 and is_signed false for every type.
    head = _dims(tensor) + b"\x10\x08"
    head += b"\x19" + struct.pack("<d", quantized.scale)
    head += b"\x21" + struct.pack("<d", quantized.zero_point) + b"\x28\x00"
    if nbytes:
        head += length_head(6, nbytes)
    tail = tagged(7, name) + b"\x40" + varint(NUMBERS[dtype.name])
    size = len(head) + nbytes + len(tail)
    head = tagged(1, name) + tagged(2, b"Int8TensorCPU") + length_head(5, size) + head
    require_message_size(len(head) + nbytes + len(tail))
    return joined(head, impl, 0, n, nbytes, tail)


def _contiguous_on_cpu(tensor: Tensor) -> Tensor:
    """Return the tensor itself, or a copy if it is not contiguous or not on the CPU."""
    if not tensor.is_contiguous():
        tensor = Tensor(AtTensor(tensor).contiguous())
    if tensor.GetDeviceType() == DeviceType.CPU or not tensor.storage_initialized():
        return tensor
    return Tensor(tensor, "cpu")


def _device_detail(tensor: Tensor) -> bytes:
    """Return the DeviceOption of a tensor, with an explicit type, as bytes."""
    device = tensor.GetDevice()
    if device.type in (DeviceType.CPU, DeviceType.CUDAHost):
        return b"\x08" + varint(CPU)
    if device.type == DeviceType.CUDA:
        return b"\x08" + varint(CUDA) + b"\x10" + varint(max(device.index, 0))
    raise EnforceTypeError(f"Caffe2's files have no device like {device}; copy it to the CPU")


def require_message_size(nbytes: int) -> None:
    """Raise EnforceNotMet, also a ValueError, for a message of 2 GiB or more."""
    if nbytes > _MAX_MESSAGE:
        raise EnforceValueError(
            f"it takes {nbytes} bytes, and protobuf does not read messages of more than "
            f"{_MAX_MESSAGE}; the Save operator writes large tensors in chunks"
        )


def _dims(tensor: Tensor) -> bytes:
    return b"".join(varint_field(1, size) for size in tensor.sizes())
