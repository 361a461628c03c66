# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Feeding a blob: fast paths for a torch tensor and for an array like the previous one."""

from cpython.object cimport PyTypeObject

from bridge.caffe2.blobs.core cimport hold_tensor, own_tensor_of
from bridge.c10.python_api cimport Py_TYPE
from bridge.c10.reports cimport is_observed, unlikely
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl
from bridge.caffe2.blobs.replace cimport overwrite
from bridge.caffe2.tensor.tensor cimport Tensor, wrap
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
    """Copy a NumPy array into the memory of `to`, if it is the bridge's own and of as many elements
    of the same type; return whether it was copied.
    """
    cdef TensorImpl source
    if unlikely(is_observed()):
        return False
    try:
        source = import_array(array, False)
    except BufferError:  # strings, another byte order, misaligned
        return False
    return source.flags & CONTIGUOUS and overwrite(to, source, -1)

# pyi: def put(blob: BlobCore, value: Any) -> None: ...
