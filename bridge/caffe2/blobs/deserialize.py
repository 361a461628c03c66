# SPDX-License-Identifier: Apache-2.0
"""Blobs from the bytes that Caffe2 and others wrote.

Everything that a message says is checked before anything is allocated or changed, so what is
refused leaves the blob as it was, and memory is bounded: the number of values that a message has
must be the number that its shape, or its segment, makes. A segment is part of a larger tensor, of
which the whole is allocated when its first part arrives, as in Caffe2; so there alone a short
message may ask for more memory than it fills. It is refused if that is more than the machine has.
Elements that no segment has brought yet are zero.

A tensor goes into the buffer that the blob's own tensor has where type and size fit, so that who
shares it sees it; memory that came from outside is not written: the blob gets its own.

Beyond Caffe2, `raw_data` is read where the field of the type is empty. Short of it: a tensor of
blobs (type UNDEFINED with elements) is refused, and so are strings left over, which Caffe2 drops.

Follows caffe2/core/blob_serialization.cc and int8_serialization.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
import os

from bridge import c10
from bridge.c10 import Device, DeviceType, GetAllocator, TypeMeta
from bridge.c10 import string as string_type
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.data_types import ELEMENT_TYPES, FIELDS, DataType
from bridge.caffe2.base.device_option import tensor_device
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.base.text import shown_sizes
from bridge.caffe2.blobs.copies import keeps_buffer
from bridge.caffe2.blobs.feed import put_device_copy
from bridge.caffe2.blobs.int8 import Int8TensorCPU
from bridge.caffe2.blobs.message import BlobMessage, TensorMessage
from bridge.caffe2.blobs.object_forms import object_of
from bridge.caffe2.tensor.tensor import Tensor
from bridge.wire.payload import copy_raw, zero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from bridge.caffe2.blobs.blob import Blob

__all__ = ["TENSOR_TYPES", "deserialize", "device_of", "read_message", "read_object"]

# The types of 8 and 16 bits, whose elements byte_data may hold as they are in memory.
_IN_BYTES = (c10.bool, c10.float16, c10.int8, c10.int16, c10.uint8, c10.uint16)
TENSOR_TYPES = (b"Tensor", b"TensorCPU", b"TensorCUDA")
_INT8_TYPES = (DataType.INT32, DataType.UINT8)
_CPU = Device("cpu")
# A list of so many strings is a gigabyte before the first of them is there.
_MAX_PARTIAL_STRINGS = 2**27
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_INT64_MAX = 2**63 - 1


def deserialize(blob: Blob, data: Any, subject: str, caller: str) -> None:
    """Make `blob` hold what `data`, contiguous bytes, say: copied.

    Raises EnforceNotMet: they are no blob of Caffe2's, contradict themselves, or hold what is not
    to be had here; the blob holds what it held. `subject` is what the error calls the blob.
    """
    try:
        message = BlobMessage(data)
        if not read_object(blob, message, data):
            read_message(blob, message)
    except Exception as cause:
        raise wrap_error(
            f"{subject} cannot be made of these bytes, and is as it was", caller, cause
        ) from cause


def read_object(blob: Blob, message: BlobMessage, data: Any) -> bool:
    """Make `blob` hold the object that `message`, read from `data`, says; False: it is of no such.

    Raises whatever error stops it; the blob holds what it held.
    """
    held = object_of(message.type, lambda: bytes(data))
    if held is not None:
        blob.Reset(held)
    return held is not None


def read_message(blob: Blob, message: BlobMessage, device: Device | None = None) -> None:
    """Make `blob` hold what `message` says, on `device`; None: on the one that it names.

    Raises whatever error stops it, as `deserialize` says; the blob holds what it held.
    """
    if message.type in TENSOR_TYPES:
        _read_tensor(blob, message, device)
    elif message.type == b"std::string":
        blob._hold_string(message.content)
    elif message.type == b"Int8TensorCPU":
        _read_int8(blob, message)
    else:
        raise EnforceTypeError(
            f"they are of the type {message.type[:80]!r}, and what can be read are tensors, "
            "strings, Int8 tensors, counters, indexes, maps, mutexes and cursors"
        )


def _read_tensor(blob: Blob, message: BlobMessage, device: Device | None) -> None:
    tensor = message.tensor
    if tensor is None:
        raise EnforceValueError("they say that there is a tensor, and there is none")
    if device is None:
        device = device_of(tensor)
    dims = tensor.dims
    meta, fill, n = _content_of(tensor)
    if tensor.data_type == DataType.UNDEFINED:
        dims = [0]
    if device.type == DeviceType.CPU:
        old = blob._tensor
        into = _target(old, blob._own, dims, meta, n)
        if into is old:
            into.Resize(dims)
        fill(into)
        if into is not old:
            blob._replace(into)
    else:
        part = n < math.prod(dims)
        old = _on_cpu(blob._tensor) if part and _is_on(blob._tensor, device) else None
        into = _target(old, True, dims, meta, n)
        into.Resize(dims)
        fill(into)
        put_device_copy(blob, Tensor(into, device))


def _read_int8(blob: Blob, message: BlobMessage) -> None:
    quantized = message.qtensor
    if quantized is None:
        raise EnforceValueError("they say that there is an Int8 tensor, and there is none")
    if quantized.data_type not in _INT8_TYPES:
        raise EnforceTypeError(
            f"an Int8 tensor has elements of int32 (2) or uint8 (6), not of the type number "
            f"{quantized.data_type}"
        )
    if not (math.isfinite(quantized.bias) and _INT32_MIN <= quantized.bias <= _INT32_MAX):
        raise EnforceValueError(f"the zero point {quantized.bias} is no int32")
    meta = ELEMENT_TYPES[quantized.data_type]
    _require_count(quantized.dims, _numel(quantized.dims, meta), quantized.data.n)
    tensor = _new(quantized.dims, meta, zeroed=False)
    quantized.data.into(tensor.unsafeGetTensorImpl(), 0)
    # Caffe2 keeps the scale as a float, the zero point as an int.
    held = Int8TensorCPU(tensor, quantized.scale, int(quantized.bias))
    blob._hold_object(held, TypeMeta.Make(Int8TensorCPU))


def _content_of(tensor: TensorMessage) -> tuple[TypeMeta, Callable[[Tensor], None], int]:
    """Check a tensor message: the element type, what copies the values, and how many they are."""
    if tensor.data_type == DataType.UNDEFINED:
        meta = c10.float32
        if _numel(tensor.dims, meta):
            raise EnforceTypeError("the tensor has elements and no type for them")
        # What Caffe2 makes of a tensor that had no type yet.
        return meta, lambda into: None, 0
    if tensor.data_type not in ELEMENT_TYPES:
        raise EnforceTypeError(f"elements of the type number {tensor.data_type} are not for Caffe2")
    meta = ELEMENT_TYPES[tensor.data_type]
    field = FIELDS[tensor.data_type]
    numel = _numel(tensor.dims, meta)
    begin, end = (0, numel) if tensor.segment is None else tensor.segment
    if not 0 <= begin <= end <= numel:
        raise EnforceValueError(
            f"the segment [{begin}, {end}) is not within a tensor of {numel} elements"
        )
    n = end - begin
    payload = getattr(tensor, field)
    span = tensor.byte_data if meta in _IN_BYTES else None
    if field == "byte_data":
        payload, span = None, tensor.byte_data or (0, 0)
    elif span is None and payload.n == 0 and meta.is_pod:
        span = tensor.raw_data
    if span is None:
        _require_count(tensor.dims, n, payload.n)
    else:
        offset, nbytes = span
        _require_count(tensor.dims, n * meta.itemsize, nbytes, "bytes")
    if n < numel:
        _require_room(numel, meta)

    def fill(into: Tensor) -> None:
        impl = into.unsafeGetTensorImpl()
        if span is None:
            payload.into(impl, begin)
        else:
            copy_raw(tensor.source, offset, nbytes, impl, begin)

    return meta, fill, n


def _target(old: Tensor | None, own: bool, dims: list[int], meta: TypeMeta, n: int) -> Tensor:
    """Return the tensor on the CPU that `n` new elements go into: `old`, to be resized, or another.

    Where they are not all that there are, the others stay what they are in `old`, or are zero.
    """
    numel = math.prod(dims)
    if old is not None and old.defined() and old.IsType(meta) and old.is_contiguous():
        if own and keeps_buffer(old, numel * meta.itemsize):
            return old
        if n < numel == old.numel() and old.storage_initialized() and _is_on(old, _CPU):
            copy = Tensor(old, "cpu")
            copy.Resize(dims)
            return copy
    return _new(dims, meta, zeroed=n < numel)


def _new(dims: list[int], meta: TypeMeta, zeroed: bool) -> Tensor:
    tensor = Tensor(dims, "cpu")
    tensor.raw_mutable_data(meta)
    if zeroed:
        zero(tensor.unsafeGetTensorImpl())
    return tensor


def _on_cpu(tensor: Tensor | None) -> Tensor | None:
    if tensor is None or not tensor.is_contiguous() or not tensor.storage_initialized():
        return None
    return Tensor(tensor, "cpu")


def _is_on(tensor: Tensor | None, device: Device) -> bool:
    return tensor is not None and tensor.defined() and tensor.GetDevice() == device


def device_of(tensor: TensorMessage) -> Device:
    """Return the device that a tensor message names. Raises EnforceNotMet: it is not there."""
    device = tensor_device(tensor.device_type, tensor.device_id)
    if device is None:
        raise EnforceTypeError(
            f"they say the device type {tensor.device_type}; tensors live on 0 (CPU) and 1 (CUDA)"
        )
    if device.type == DeviceType.CUDA:
        # A device that is not there has no tensors, such without elements neither.
        GetAllocator(device).allocate(1)
    return device


def _numel(dims: list[int], meta: TypeMeta) -> int:
    """Count the elements. Raises EnforceNotMet: a dimension is negative, or they are too many."""
    if any(dim < 0 for dim in dims):
        raise EnforceValueError(f"a dimension of {shown_sizes(dims)} is negative")
    # Also where another is zero: strides could not be computed.
    if math.prod(dim for dim in dims if dim) * meta.itemsize > _INT64_MAX:
        raise EnforceValueError(f"the shape {shown_sizes(dims)} is of more bytes than there can be")
    return math.prod(dims)


def _require_count(dims: list[int], wanted: int, found: int, what: str = "values") -> None:
    if wanted != found:
        raise EnforceValueError(
            f"the shape {shown_sizes(dims)} and its segment ask for {wanted} {what}, and there are "
            f"{found}",
        )


def _require_room(numel: int, meta: TypeMeta) -> None:
    """Refuse part of a tensor of which the whole cannot be had."""
    nbytes = numel * meta.itemsize
    room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if nbytes > room or (meta is string_type and numel > _MAX_PARTIAL_STRINGS):
        raise EnforceValueError(
            f"they are part of a tensor of {numel} elements, {nbytes} bytes, which is more than "
            "there is memory for"
        )
