# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""What a torch.Tensor is at this moment: its sizes, strides, type, address and lazy bits."""

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from bridge.c10.device cimport Device, as_device
from bridge.c10.dims cimport Dims, new_dims
from bridge.c10.python_api cimport owned, take_pending
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.dlpack.abi cimport DL_CPU, DLTensor
from bridge.exchange.torch_api cimport is_plain, torch, torch_c


cdef object described(object tensor, DLTensor* description):
    """Fill `description`, which borrows from a torch.Tensor; return what keeps sizes and strides.

    That is the tensor, or what was made for it before torch 2.10, which has no exchange table.
    None: the tensor has no memory.
    """
    if torch_c.dlpack == NULL:
        if is_plain(tensor):
            return _by_attributes(tensor, description)
        with torch._C.DisableTorchFunctionSubclass():
            return _by_attributes(tensor, description)
    if torch_c.dlpack.dltensor_from_py_object_no_sync(<PyObject*>tensor, description) == 0:
        return tensor
    take_pending()
    return None


cdef Dims _by_attributes(object tensor, DLTensor* out):
    """Do as `described`, by what Python sees of the tensor."""
    cdef TypeMeta dtype
    cdef Device device
    cdef Dims kept
    cdef int i
    try:
        # A tensor without a storage has no address, a nested one no sizes.
        address = tensor.data_ptr()
        sizes, strides = tensor.shape, tensor.stride()
        dtype = as_type(tensor.dtype)
        device = None if tensor.is_cpu else as_device(tensor.device)
    except (RuntimeError, TypeError, ValueError):
        return None         # or a type or device that DLPack lacks
    out.ndim = len(sizes)
    kept = new_dims(2 * out.ndim)
    out.data = <void*><uintptr_t>address
    out.device.device_type = DL_CPU if device is None else device.c_type
    out.device.device_id = 0 if device is None else max(device.c_index, 0)
    out.dtype = dtype.c_dlpack
    out.shape, out.strides, out.byte_offset = kept.data, kept.data + out.ndim, 0
    for i in range(out.ndim):
        out.shape[i], out.strides[i] = sizes[i], strides[i]
    return kept


cdef bint has_lazy_bit(object tensor, bint is_complex) except -1:
    """Return whether the memory of a torch.Tensor holds other values than it shows.

    `is_complex`: its elements are complex numbers; only these can be conjugates.
    """
    cdef PyObject* t = <PyObject*>tensor
    if is_plain(tensor) and torch_c.is_neg != NULL and torch_c.is_conj != NULL:
        return owned(torch_c.is_neg(t, NULL)) or (is_complex and owned(torch_c.is_conj(t, NULL)))
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.is_neg() or tensor.is_conj()
