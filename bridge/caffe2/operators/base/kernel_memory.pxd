# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

cdef float* floats_of(object tensor, int64_t numel) except? NULL
cdef int check_rows(
    const void *indices, bint wide, int64_t n, int64_t first, int64_t rows) except -1
