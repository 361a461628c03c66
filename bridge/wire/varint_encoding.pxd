# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uint8_t, uint64_t

from bridge.wire.varint_decoding cimport Kind

# Counts are of elements, sizes in bytes.
cdef int varint_size(uint64_t value) noexcept nogil
cdef int64_t packed_size(Kind kind, const void* values, int64_t n) noexcept nogil
cdef bint encode(
    Kind kind, const void* values, int64_t n, uint8_t* out, int64_t nbytes) noexcept nogil
