# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t, int64_t

cdef class AllocatorStats:
    cdef int64_t c_allocated
    cdef int64_t c_peak
    cdef int64_t c_allocations
    cdef void add(self, int64_t nbytes) noexcept
    cdef void remove(self, int64_t nbytes) noexcept

cdef class Allocator:
    cdef public object alignment  # pyi: int
    cdef readonly AllocatorStats stats
    cdef dict sizes             # of the buffers from raw_allocate: address -> bytes
    # For threads inside an overridden raw_allocate: thread -> whether it called the one of this
    # class, which updates the statistics.
    cdef dict base_called
    cdef bint builtin           # nothing is overridden, so the C functions are called directly
    cdef DataPtr get(self, int64_t nbytes)

# The owner of a buffer, which it returns to its allocator when it is deallocated.
cdef class DataPtr:
    cdef void* data
    cdef int64_t c_nbytes
    cdef Allocator allocator
    cdef object memory          # an object that owns the buffer and frees it; or None
    cdef bint counted           # the DataPtr and not raw_allocate updated the statistics

cdef Allocator allocator_of(int32_t device_type, int32_t index)
