# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""What a torch.Tensor is at this moment: its sizes, strides, type, address and lazy bits."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uintptr_t

from bridge.c10.device cimport Device, as_device
from bridge.c10.python_api cimport owned, take_pending
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.dlpack.abi cimport DLTensor
from bridge.exchange.torch_api cimport is_plain, torch, torch_c


cdef bint described(object tensor, DLTensor* description, int64_t* room) except -1:
    """Fill `description`, which borrows from a torch.Tensor; return False if it has no memory.

    `room`, of ROOM, has the sizes and strides before torch 2.10, which has no exchange table.
    """
    if torch_c.dlpack == NULL:
        return _by_attributes(tensor, description, room)
    if torch_c.dlpack.dltensor_from_py_object_no_sync(<PyObject*>tensor, description) == 0:
        return True
    take_pending()
    return False


cdef bint _by_attributes(object tensor, DLTensor* out, int64_t* room) except -1:
    """Do as `described`, by what Python sees of the tensor."""
    cdef TypeMeta dtype
    cdef Device device
    cdef int i
    with torch._C.DisableTorchFunctionSubclass():
        try:
            address = tensor.data_ptr()
            sizes, strides = tensor.shape, tensor.stride()
            dtype = as_type(tensor.dtype)
            device = as_device(tensor.device)
        except (RuntimeError, TypeError, ValueError):
            return False        # no storage, or a type or device that DLPack lacks
    if len(sizes) > ROOM // 2 or tensor.is_quantized:
        return False
    out.data = <void*><uintptr_t>address
    out.device.device_type = device.c_type
    out.device.device_id = max(device.c_index, 0)
    out.ndim = len(sizes)
    out.dtype = dtype.c_dlpack
    out.shape, out.strides, out.byte_offset = room, room + out.ndim, 0
    for i in range(out.ndim):
        out.shape[i], out.strides[i] = sizes[i], strides[i]
    return True


cdef bint has_lazy_bit(object tensor, bint is_complex) except -1:
    """Return whether the memory of a torch.Tensor holds other values than it shows.

    `is_complex`: its elements are complex numbers; only these can be conjugates.
    """
    cdef PyObject* t = <PyObject*>tensor
    if is_plain(tensor) and torch_c.is_neg != NULL and torch_c.is_conj != NULL:
        return owned(torch_c.is_neg(t, NULL)) or (is_complex and owned(torch_c.is_conj(t, NULL)))
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.is_neg() or tensor.is_conj()
