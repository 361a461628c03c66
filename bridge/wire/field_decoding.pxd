# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bridge.wire.tensor_decoding cimport Payload, Source

cdef enum Wire:
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    GROUP = 3
    END_GROUP = 4
    FIXED32 = 5

cdef struct Field:
    uint32_t number
    uint32_t wire
    const uint8_t* tag      # where the field begins
    const uint8_t* at       # where its value begins; for BYTES after the length
    const uint8_t* stop     # where the next field begins
    uint64_t value          # of a varint; for BYTES their number
    int depth               # of the message that contains the field

cdef object malformed(Source source, const uint8_t* at, str what)
cdef const uint8_t* next_field(
    Source source, const uint8_t* at, const uint8_t* end, Field* field) except NULL
cdef int add_values(Source source, Payload payload, Field* field, Wire wire) except -1
cdef tuple span(Source source, Field* field)
