# SPDX-License-Identifier: Apache-2.0
"""Copying NumPy arrays into tensors, and back.

An array goes into the tensor's buffer if it has the same type, is large enough, and is the bridge's
own; tensors that share the buffer, torch's included, see the new values. An array of another type
gets a new buffer. This differs from Caffe2, where a torch tensor that shares the buffer changes its
type, too; here it would read the bits of another type.

A function that fails leaves the tensor unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bridge.annotation import Array
from bridge.c10 import Device, DeviceType, TypeMeta
from bridge.c10 import string as string_type
from bridge.c10.reports import report_copy
from bridge.c10.resize_flags import FLAGS
from bridge.c10.type_meta import type_of_elements
from bridge.caffe2.blobs.replace import adopt, copy_array
from bridge.caffe2.blobs.string_arrays import STRING_KINDS, encoded_elements
from bridge.caffe2.blobs.string_items import array_of_strings, put_elements
from bridge.caffe2.tensor.tensor import Tensor

_FED = "a NumPy array is copied when it is fed"


def tensor_of_array(array: Array) -> Tensor:
    """Copy a NumPy array, which may have strings, into a new tensor on the CPU.

    Raises TypeError, UnicodeEncodeError, EnforceNotMet: elements of an unknown type. MemoryError.
    """
    _refuse_mask(array)
    report_copy(array.nbytes, _FED)
    if array.dtype.kind in STRING_KINDS:
        tensor = Tensor(array.shape, "cpu")
        tensor.mutable_data(string_type)
        put_elements(tensor, encoded_elements(array))
    else:
        tensor = Tensor(array.shape, "cpu")
        tensor.raw_mutable_data(type_of_elements(array.dtype))
        tensor.numpy()[...] = array
    return tensor


def copy_into(tensor: Tensor, array: Array) -> None:
    """Copy a NumPy array into a tensor on the CPU, which gets its shape and type.

    The tensor keeps its buffer if that is the bridge's own, of the same type and large enough.
    Raises as `tensor_of_array`; the tensor is then unchanged.
    """
    _refuse_mask(array)
    if array.dtype.kind in STRING_KINDS:
        items = encoded_elements(array)
        if tensor.IsType(string_type) and tensor.sizes() == array.shape:
            report_copy(array.nbytes, _FED)
            put_elements(tensor, items)
            return
    elif tensor.IsType(type_of_elements(array.dtype)):
        report_copy(array.nbytes, _FED)
        copy_array(tensor, array)
        return
    adopt(tensor, tensor_of_array(array))


def prepare(tensor: Tensor, dims: Sequence[int], meta: TypeMeta) -> None:
    """Set the sizes and type of `tensor`, and allocate its memory, which is not initialized.

    The buffer is kept if sizes and type do not change, or if it is the bridge's own, of the same
    type and large enough. Raises EnforceNotMet, MemoryError; the tensor is then unchanged.
    """
    if tensor.IsType(meta) and tensor.storage_initialized() and tensor.sizes() == dims:
        return
    fresh = Tensor(dims, tensor.GetDevice())  # raises for invalid sizes
    if tensor.IsType(meta) and keeps_buffer(tensor, fresh.numel() * meta.itemsize):
        tensor.Resize(dims)
    else:
        fresh.raw_mutable_data(meta)
        adopt(tensor, fresh)


def copied_to_numpy(tensor: Tensor) -> Array:
    """Return a tensor as a new NumPy array, copied; strings as an object array of `bytes`.

    Raises BufferError, EnforceNotMet, TypeError: nothing is allocated, or NumPy lacks the type.
    """
    report_copy(tensor.nbytes(), "what is fetched into NumPy is a copy")
    if tensor.IsType(string_type):
        return array_of_strings(tensor)
    if tensor.unsafeGetTensorImpl().owns_memory() and tensor.GetDeviceType() == DeviceType.CPU:
        return tensor.numpy().copy()
    # numpy() would retain a framework's memory for good, although the array is only copied.
    fetched = Tensor("cpu")
    fetched.CopyFrom(tensor)
    return fetched.numpy()


def _refuse_mask(array: Array) -> None:
    # another thread may be importing the module, which lacks the class until then
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if masked is not None and isinstance(array, masked):
        raise TypeError(
            "a masked array has a mask, which a tensor cannot hold; feed array.filled(value), or "
            "array.data and array.mask separately"
        )


def is_on(tensor: Tensor | None, device: Device) -> bool:
    """Return whether there is a tensor, and it is defined and on `device`."""
    return tensor is not None and tensor.defined() and tensor.GetDevice() == device


def keeps_buffer(tensor: Tensor, nbytes: int) -> bool:
    """Return whether `tensor` has the bridge's own buffer and would keep it for `nbytes` bytes."""
    impl = tensor.unsafeGetTensorImpl()
    if not impl.owns_memory():
        return False
    begin = impl.storage_offset() * tensor.itemsize()
    spare = tensor.storage().nbytes() - begin - nbytes
    if nbytes == tensor.nbytes():
        return spare >= 0
    return FLAGS.caffe2_keep_on_shrink and 0 <= spare <= FLAGS.caffe2_max_keep_on_shrink_memory
