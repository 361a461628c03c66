# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uint64_t, uintptr_t

cdef extern from *:
    """
    #define BRIDGE_MAX_BYTES ((int64_t)1 << 56)
    #define BRIDGE_MAX_OFFSET ((int64_t)1 << 58)
    """
    const int64_t MAX_BYTES "BRIDGE_MAX_BYTES"      # no machine has more address space
    # Of a tensor without elements, in elements: its bytes fit an int64, and those of any others.
    const int64_t MAX_OFFSET "BRIDGE_MAX_OFFSET"

# All counts are in elements. A function that can overflow returns -1 on overflow.
cdef int64_t checked_numel(const int64_t* sizes, int ndim) noexcept nogil
cdef int64_t checked_mul(int64_t a, int64_t b) noexcept nogil
cdef void contiguous_strides(const int64_t* sizes, int64_t* strides, int ndim) noexcept nogil
cdef bint is_contiguous(const int64_t* sizes, const int64_t* strides, int ndim) noexcept nogil
cdef int extent(
    const int64_t* sizes, const int64_t* strides, int ndim,
    int64_t* lowest, int64_t* highest) noexcept nogil
cdef int64_t block(
    uintptr_t first, const int64_t* sizes, const int64_t* strides, int ndim, int64_t itemsize,
    int64_t* lowest) noexcept nogil
cdef int view_strides(
    const int64_t* old_sizes, const int64_t* old_strides, int old_ndim,
    const int64_t* new_sizes, int64_t* new_strides, int new_ndim) noexcept nogil


# Strides and offsets that reach no element may have any value. They wrap around, as in ATen; of
# signed numbers C leaves undefined what happens.

cdef inline int64_t wrapped_add(int64_t a, int64_t b) noexcept nogil:
    return <int64_t>(<uint64_t>a + <uint64_t>b)


cdef inline int64_t wrapped_mul(int64_t a, int64_t b) noexcept nogil:
    return <int64_t>(<uint64_t>a * <uint64_t>b)
