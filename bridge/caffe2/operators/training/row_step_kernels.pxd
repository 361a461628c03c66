# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t, int64_t

cdef inline int64_t row_at(const void *indices, bint wide, int64_t i) noexcept nogil:
    return (<const int64_t *>indices)[i] if wide else (<const int32_t *>indices)[i]

cdef const void* rows_of(object indices, bint wide, int64_t n, int64_t rows) except? NULL
