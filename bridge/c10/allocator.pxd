# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t, int64_t

cdef class AllocatorStats:
    cdef int64_t c_allocated
    cdef int64_t c_peak
    cdef int64_t c_allocations
    cdef void add(self, int64_t nbytes) noexcept
    cdef void remove(self, int64_t nbytes) noexcept

cdef class Allocator:
    cdef public object alignment
    cdef readonly AllocatorStats stats
    cdef dict sizes             # of what raw_allocate gave out: address -> bytes
    # Threads that are in an overridden raw_allocate, and whether it has come by ours, which tells
    # the statistics.
    cdef dict told
    cdef bint builtin           # the C path may be taken: nothing is overridden
    cdef DataPtr get(self, int64_t nbytes)

# Owns a buffer. Its end gives the buffer back to the allocator it came from.
cdef class DataPtr:
    cdef void* data
    cdef int64_t c_nbytes
    cdef Allocator allocator
    cdef object memory          # an object that the buffer is of, which gives it back; or None
    cdef bint counted           # DataPtr and not raw_allocate told the statistics

cdef Allocator allocator_of(int32_t device_type, int32_t index)
