# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl

cdef int resize(TensorImpl self, const int64_t* sizes, int ndim, str caller) except -1
cdef int reshape(TensorImpl self, const int64_t* sizes, int ndim, str caller) except -1
cdef bint extend_in_place(TensorImpl self, int64_t num) noexcept
cdef int extend(TensorImpl self, int64_t num, double growth_pct, str caller) except -1
cdef int extend_to(TensorImpl self, int64_t rows, double growth_pct, str caller) except -1
cdef int shrink_to(TensorImpl self, int64_t outer_dim, str caller) except -1
cdef int reserve_space(TensorImpl self, int64_t outer_dim, str caller) except -1
