# SPDX-License-Identifier: Apache-2.0
# Rows of float32 tables at some indices. Without indices the rows are 0, 1, ...

from libc.stdint cimport int32_t, int64_t

cdef extern from *:
    """
    #if defined(__GNUC__)
      #define PREFETCH(address) __builtin_prefetch(address)
    #else
      #define PREFETCH(address)
    #endif
    """
    void PREFETCH(const void *address) noexcept nogil

cdef enum:
    AHEAD = 8       # rows that are fetched before it is their turn
    LINE = 16       # elements in a line of the cache

cdef inline int64_t row_at(const void *indices, bint wide, int64_t i) noexcept nogil:
    if indices == NULL:
        return i
    return (<const int64_t *>indices)[i] if wide else (<const int32_t *>indices)[i]

cdef inline void fetch(const float *row, int64_t width) noexcept nogil:
    cdef int64_t i = 0
    while i < width:
        PREFETCH(row + i)
        i += LINE
