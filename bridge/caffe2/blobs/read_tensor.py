# SPDX-License-Identifier: Apache-2.0
"""Tensors from the messages that Caffe2 and others wrote.

A message is checked in full before memory is allocated or the blob changed. The number of values
must be the number that the shape, or the segment, requires, so a short message cannot ask for much
memory. A segment is the exception: it is part of a larger tensor, which is allocated when its first
part arrives, as in Caffe2. A tensor larger than the machine's memory is refused. Elements that
no segment has set are zero.

Values are written into the buffer of the blob's own tensor if type and size fit; tensors that share
the buffer see them. Memory that came from outside is not written: the blob gets a new tensor.

Elements without a type number are blobs; those of records are read, which Caffe2 writes without
their columns. Unlike Caffe2, `raw_data` is read if the type's field is empty; tensors of other
blobs, and surplus strings, which Caffe2 drops, are refused.

Follows caffe2/core/blob_serialization.cc and int8_serialization.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
import os
import sys

from bridge import c10
from bridge.c10 import Device, DeviceType, GetAllocator, TypeMeta
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.data_types import ELEMENT_TYPES, FIELDS, DataType
from bridge.caffe2.base.device_option import tensor_device
from bridge.caffe2.base.names import shown_sizes
from bridge.caffe2.blobs.copies import is_on, keeps_buffer
from bridge.caffe2.blobs.core import BlobCore
from bridge.caffe2.blobs.int8 import Int8TensorCPU
from bridge.caffe2.blobs.message import BlobMessage, TensorMessage
from bridge.caffe2.blobs.objects import Record
from bridge.caffe2.blobs.put_by_type import put_device_copy
from bridge.caffe2.blobs.write_tensor import RECORD_TYPE
from bridge.caffe2.tensor.tensor import Tensor
from bridge.wire.decoding import Payload, copy_raw, zero

# The types of 8 and 16 bits, whose elements byte_data may hold as they are in memory.
_IN_BYTES = (c10.bool, c10.float16, c10.int8, c10.int16, c10.uint8, c10.uint16)
TENSOR_TYPES = (b"Tensor", b"TensorCPU", b"TensorCUDA")
_RECORD = TypeMeta.Make(Record)
_INT8_TYPES = (DataType.INT32, DataType.UINT8)
_ON_HOST = (DeviceType.CPU, DeviceType.CUDAHost)
# A list of this many empty strings takes a gigabyte.
_MAX_PARTIAL_STRINGS = 2**27
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_INT64_MAX = 2**63 - 1


def read_tensor(blob: BlobCore, message: BlobMessage, device: Device | None) -> None:
    """Make `blob` hold a copy of the tensor in `message`, on `device`.

    None: on the device in the message. A segment sets a part of the blob's tensor. Raises
    EnforceNotMet, or the error of the copy; the blob is then unchanged.
    """
    tensor = message.tensor
    if tensor is None:
        raise EnforceValueError("their type is a tensor, but the field `tensor` is missing")
    if device is None:
        device = device_of(tensor)
    content = content_of(tensor)
    dims, meta, n = content.dims, content.meta, content.end - content.begin
    if n < math.prod(dims):
        _require_memory(math.prod(dims), meta)
    present = blob._tensor
    if device.type == DeviceType.CPU:
        target = _target(present, present is blob._own_tensor(), dims, meta, n)
        if target is present:
            target.Resize(dims)
        content.copy_to(target, content.begin)
        if target is not present:
            blob._replace(target)
    else:
        partial = n < math.prod(dims)
        staged = _copy_on_cpu(present) if partial and is_on(present, device) else None
        target = _target(staged, True, dims, meta, n)
        target.Resize(dims)
        content.copy_to(target, content.begin)
        put_device_copy(blob, Tensor(target, device))


def int8_tensor_of(message: BlobMessage) -> Int8TensorCPU:
    """Return a copy of the quantized tensor in `message`, on the CPU.

    Raises EnforceNotMet: there is none, it has elements of another type than int32 and uint8, their
    number differs from the elements of the shape, or the zero point is not an int32.
    """
    quantized = message.qtensor
    if quantized is None:
        raise EnforceValueError("their type is an Int8 tensor, but the field `qtensor` is missing")
    if quantized.data_type not in _INT8_TYPES:
        raise EnforceTypeError(
            f"an Int8 tensor has elements of int32 (2) or uint8 (6), not of the type number "
            f"{quantized.data_type}"
        )
    if not (math.isfinite(quantized.bias) and _INT32_MIN <= quantized.bias <= _INT32_MAX):
        raise EnforceValueError(f"the zero point {quantized.bias} is not an int32")
    meta = ELEMENT_TYPES[quantized.data_type]
    _require_count(quantized.dims, _numel(quantized.dims, meta), quantized.data.n)
    tensor = _new(quantized.dims, meta, zeroed=False)
    quantized.data.into(tensor.unsafeGetTensorImpl(), 0)
    # Caffe2 keeps the scale as a float and the zero point as an int.
    return Int8TensorCPU(tensor, quantized.scale, int(quantized.bias))


class Content:
    """The checked contents of a TensorProto: elements [begin, end) of a tensor of sizes `dims`.

    meta: the type of the elements. span: (offset, bytes) of the elements in the message's bytes, if
    they are there as they are in memory; else None.
    """

    __slots__ = ("_payload", "_source", "begin", "dims", "end", "meta", "span")

    def __init__(
        self, tensor: TensorMessage, dims: list[int], meta: TypeMeta, begin: int, end: int
    ) -> None:
        self.dims = dims
        self.meta = meta
        self.begin = begin
        self.end = end
        self.span: tuple[int, int] | None = None
        self._source = tensor.source
        self._payload: Payload | None = None

    def copy_to(self, target: Tensor, at: int) -> None:
        """Copy the elements into a contiguous tensor on the CPU, from its element `at` on."""
        impl = target.unsafeGetTensorImpl()
        if self.meta is _RECORD:
            n = self.end - self.begin
            target.mutable_data(self.meta)[at : at + n] = [Record() for _ in range(n)]
        elif self._payload is not None:
            self._payload.into(impl, at)
        elif self.span is not None:
            copy_raw(self._source, *self.span, impl, at)


def content_of(tensor: TensorMessage) -> Content:
    """Return the contents of a message, without copying the elements.

    Raises EnforceNotMet: the message contradicts itself, or has elements of an unknown type.
    """
    if tensor.data_type == DataType.UNDEFINED:
        meta = c10.float32  # which Caffe2 reads for a tensor that had no type yet
        if not _numel(tensor.dims, meta):
            return Content(tensor, [0], meta, 0, 0)
        begin, end = _segment(tensor, math.prod(tensor.dims))
        _require_records(tensor, end - begin)
        return Content(tensor, tensor.dims, _RECORD, begin, end)
    if tensor.data_type not in ELEMENT_TYPES:
        raise EnforceTypeError(
            f"the type number {tensor.data_type} is not an element type of Caffe2's tensors"
        )
    meta = ELEMENT_TYPES[tensor.data_type]
    field = FIELDS[tensor.data_type]
    numel = _numel(tensor.dims, meta)
    begin, end = _segment(tensor, numel)
    content = Content(tensor, tensor.dims, meta, begin, end)
    payload = getattr(tensor, field)
    span = tensor.byte_data if meta in _IN_BYTES else None
    if field == "byte_data":
        payload, span = None, tensor.byte_data or (0, 0)
    elif span is None and payload.n == 0 and meta.is_pod:
        span = tensor.raw_data
    if span is None:
        _require_count(tensor.dims, end - begin, payload.n)
        content._payload = payload
        content.span = payload.span
    else:
        _require_count(tensor.dims, (end - begin) * meta.itemsize, span[1], "bytes")
        content.span = span
    return content


def _segment(tensor: TensorMessage, numel: int) -> tuple[int, int]:
    """Return the elements of a tensor that a message has. Raises EnforceNotMet: not within it."""
    begin, end = (0, numel) if tensor.segment is None else tensor.segment
    if not 0 <= begin <= end <= numel:
        raise EnforceValueError(
            f"the segment [{begin}, {end}) is not within a tensor of {numel} elements"
        )
    return begin, end


def _require_records(tensor: TensorMessage, n: int) -> None:
    """Raise EnforceNotMet unless the elements are `n` records, each a message of its own."""
    _require_count(tensor.dims, n, tensor.string_data.n)
    elements = _new([n], c10.string, zeroed=False)
    tensor.string_data.into(elements.unsafeGetTensorImpl(), 0)
    for element in elements.data(c10.string):
        if BlobMessage(element).type != RECORD_TYPE:
            raise EnforceTypeError("the tensor has elements but no type for them")


def _target(present: Tensor | None, own: bool, dims: list[int], meta: TypeMeta, n: int) -> Tensor:
    """Return the tensor in host memory to copy `n` values into: `present`, to be resized, or a new
    one.

    If the values are only part of the tensor, the other elements come from `present`, or are zero.
    """
    numel = math.prod(dims)
    if (
        present is not None
        and present.defined()
        and present.GetDeviceType() in _ON_HOST
        and present.IsType(meta)
        and present.is_contiguous()
    ):
        if own and keeps_buffer(present, numel * meta.itemsize):
            return present
        if n < numel == present.numel() and present.storage_initialized():
            copy = Tensor(present, "cpu")
            copy.Resize(dims)
            return copy
    return _new(dims, meta, zeroed=n < numel)


def _new(dims: list[int], meta: TypeMeta, zeroed: bool) -> Tensor:
    tensor = Tensor(dims, "cpu")
    tensor.raw_mutable_data(meta)
    if zeroed:
        zero(tensor.unsafeGetTensorImpl())
    return tensor


def _copy_on_cpu(tensor: Tensor | None) -> Tensor | None:
    """Return a copy on the CPU; None if there is nothing to copy."""
    if tensor is None or not tensor.is_contiguous() or not tensor.storage_initialized():
        return None
    return Tensor(tensor, "cpu")


def device_of(tensor: TensorMessage) -> Device:
    """Return the device in a tensor's message.

    Raises EnforceNotMet: tensors cannot be on such devices, or the device does not exist.
    """
    device = tensor_device(tensor.device_type, tensor.device_id)
    if device is None:
        raise EnforceTypeError(
            f"their device type is {tensor.device_type}; tensors live on 0 (CPU) and 1 (CUDA)"
        )
    if device.type == DeviceType.CUDA:
        # A tensor without elements needs the device, too, but would not allocate.
        GetAllocator(device).allocate(1)
    return device


def _numel(dims: list[int], meta: TypeMeta) -> int:
    """Return the number of elements. Raises EnforceNotMet: negative dimensions, or too many."""
    if any(dim < 0 for dim in dims):
        raise EnforceValueError(f"a dimension of {shown_sizes(dims)} is negative")
    # Zero dimensions are left out: strides could not be computed for the others.
    if math.prod(dim for dim in dims if dim) * meta.itemsize > _INT64_MAX:
        raise EnforceValueError(f"the shape {shown_sizes(dims)} has more than 2**63 - 1 bytes")
    return math.prod(dims)


def _require_count(dims: list[int], required: int, found: int, what: str = "values") -> None:
    if required != found:
        raise EnforceValueError(
            f"the shape {shown_sizes(dims)} and its segment require {required} {what}, and there "
            f"are {found}",
        )


def _require_memory(numel: int, meta: TypeMeta) -> None:
    """Raise EnforceNotMet, also a ValueError, if the machine has no memory for a whole tensor."""
    nbytes = numel * meta.itemsize
    memory = _INT64_MAX  # of Windows: it allocates no more than it has
    if sys.platform != "win32":
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if nbytes > memory or (not meta.is_pod and numel > _MAX_PARTIAL_STRINGS):
        raise EnforceValueError(
            f"they are part of a tensor of {numel} elements, {nbytes} bytes, which is more than "
            "there is memory for"
        )
