# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

cdef const void* rows_of(object indices, bint wide, int64_t n, int64_t rows) except? NULL
