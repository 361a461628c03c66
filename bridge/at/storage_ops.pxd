# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.dims cimport Dims
from bridge.c10.storage cimport Storage
from bridge.c10.tensor_impl cimport TensorImpl

cdef int resize(TensorImpl impl, Dims dims) except -1
cdef int64_t storage_offset_of(TensorImpl impl) except -1
cdef TensorImpl restrided(
    TensorImpl impl, Dims sizes, Dims strides, object storage_offset, str caller)
cdef TensorImpl deep_copied(TensorImpl impl, object memo)
cdef int set_source(
    TensorImpl impl, object source, object storage_offset, object size, object stride,
) except -1
cpdef TensorImpl import_result(object tensor)
cdef bint overlap(Storage a, Storage b) noexcept
