# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl

cdef void copy_strided(
    char* dst, const int64_t* dst_strides, const char* src, const int64_t* src_strides,
    const int64_t* sizes, int ndim, int64_t itemsize) noexcept nogil
cdef int require_alike(TensorImpl dst, TensorImpl src, str caller) except -1
cdef int copy_elements(TensorImpl dst, TensorImpl src, str caller) except -1
cdef TensorImpl contiguous_copy(TensorImpl src, str caller)
cpdef int require_copy(object copy, int64_t nbytes, str reason) except -1
cpdef TensorImpl reported_copy(TensorImpl src, str reason, str caller, object copy=*)
cdef TensorImpl requested_copy(TensorImpl src, str caller)
