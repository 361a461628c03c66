# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Feeding a blob: fast paths for a torch tensor and for an array like the previous one."""

cimport cython
from cpython.object cimport PyTypeObject
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memmove

from bridge.caffe2.blobs.core cimport hold_tensor, own_tensor_of
from bridge.c10.python_api cimport RELEASE_GIL_NBYTES, Py_TYPE
from bridge.c10.reports cimport is_observed, unlikely
from bridge.c10.storage cimport BORROWED, EXTERNAL, Storage
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, checked_data, storage_of
from bridge.caffe2.tensor.tensor cimport Tensor, wrap
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.numpy cimport import_array, numpy_type
from bridge.exchange.torch_api cimport torch_type
from bridge.exchange.torch_import cimport import_torch

from bridge.caffe2.blobs.put_by_type import put_by_type

cpdef put(BlobCore blob, object value):
    """Make `blob` hold `value`: a tensor shared, an array copied, a string as `bytes`.

    Raises the reason why not: BufferError, TypeError, UnicodeEncodeError, EnforceNotMet, or
    whatever a foreign producer raises. The blob is then unchanged.
    """
    cdef PyTypeObject* cls = Py_TYPE(value)
    cdef TensorImpl impl
    cdef Tensor tensor
    if cls == torch_type() and cls != NULL:
        impl = import_torch(value, None)
        if impl.flags & CONTIGUOUS:
            hold_tensor(blob, wrap(impl), False)
            return
    elif cls == numpy_type() and cls != NULL:
        tensor = own_tensor_of(blob)
        if tensor is not None and _copied(tensor.impl, value):
            return
    put_by_type(blob, value)


cdef bint _copied(TensorImpl to, object array) except -1:
    """Copy a NumPy array into the memory of `to`, if it is the bridge's own and of the same shape
    and type; return whether it was copied.
    """
    cdef TensorImpl source
    if unlikely(is_observed()):
        return False
    try:
        source = import_array(array, False)
    except BufferError:  # strings, another byte order, misaligned
        return False
    # From here on no Python code runs, so no other thread can change what has been checked. Without
    # the GIL both are locked at once: a second section that has to wait lets go of the first.
    cdef Storage storage
    while True:
        storage = storage_of(to)
        if storage is None:
            return False
        with cython.critical_section(to, storage):
            if to.storage is storage:
                return _copied_into(to, storage, source)


cdef bint _copied_into(TensorImpl to, Storage storage, TensorImpl source) except -1:
    cdef int64_t nbytes
    cdef char* data
    if storage.data == NULL or storage.flags & (EXTERNAL | BORROWED) \
            or storage.device_type != DL_CPU or not to.c_dtype.c_is_pod:
        return False
    if source.c_dtype is not to.c_dtype or source.ndim != to.ndim \
            or not source.flags & CONTIGUOUS \
            or memcmp(source.c_sizes, to.c_sizes, to.ndim * sizeof(int64_t)) != 0:
        return False
    nbytes = to.c_numel * to.c_dtype.itemsize
    data = checked_data(to, storage, "FeedBlob")
    _keep = storage.ctx         # another thread may replace the buffer while the GIL is released
    if nbytes > RELEASE_GIL_NBYTES:
        with nogil:
            memmove(data, source.storage.data, nbytes)
    elif nbytes:
        memmove(data, source.storage.data, nbytes)
    return True
