# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.array_ref cimport INLINE_DIMS

# Sizes or strides that were read from Python arguments.
cdef class Dims:
    cdef int n
    cdef int64_t* data                  # `inline`, or from malloc
    cdef int64_t[INLINE_DIMS] inline

cdef Dims new_dims(Py_ssize_t n)
cdef Dims parse_dims(object source, str caller)
cdef Dims parse_dims_args(tuple args, str caller)

cdef int64_t require_numel(const int64_t* sizes, int ndim, str caller) except -1
cdef int require_nbytes(int64_t numel, int64_t itemsize, str caller) except -1
cdef int64_t wrap_dim(int64_t dim, int64_t ndim, str caller) except -1
