# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uint8_t, uint64_t

# Element types that protobuf keeps as varints, by their type in memory.
cdef enum Kind:
    BOOL
    U8
    I8
    U16
    I16
    I32
    I64

# Counts are of elements, sizes in bytes.
cdef int64_t count_packed(const uint8_t* packed, int64_t nbytes) noexcept nogil
cdef int64_t decode(
    Kind kind, const uint8_t* packed, int64_t nbytes, void* out, int64_t room) noexcept nogil

# At most 10 bytes, the rest of 64 bits dropped, as protobuf does; NULL: cut short, or longer.
cdef const uint8_t* read_varint(
    const uint8_t* at, const uint8_t* end, uint64_t* value) noexcept nogil

cdef int varint_size(uint64_t value) noexcept nogil
cdef uint8_t* write_varint(uint8_t* out, const uint8_t* end, uint64_t value) noexcept nogil
cdef int64_t packed_size(Kind kind, const void* values, int64_t n) noexcept nogil
cdef bint encode(
    Kind kind, const void* values, int64_t n, uint8_t* out, int64_t nbytes) noexcept nogil
