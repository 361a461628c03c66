# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl

cdef TensorImpl basic_index(TensorImpl impl, object key)
cdef TensorImpl sliced(
    TensorImpl impl, int64_t dim, object start, object end, int64_t step, str caller)
cdef int require_dim(TensorImpl impl, str caller) except -1
cdef bint is_integer(object one)
cdef TensorImpl advanced_index(TensorImpl impl, object key)
cdef int advanced_assign(TensorImpl impl, object key, object value) except -1
