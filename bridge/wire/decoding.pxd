# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta
from bridge.wire.varints cimport Kind

cdef enum:
    STRING_TAG = (6 << 3) | 2   # TensorProto.string_data

# Adjacent values of a repeated field: one packed field, or fields of one value each.
cdef struct Range:
    const uint8_t* at
    int64_t nbytes
    int64_t n           # values
    bint packed

# The bytes that a message is read from, kept alive as long as something points into them.
cdef class Source:
    cdef const unsigned char[::1] view
    cdef const uint8_t* begin
    cdef const uint8_t* end

# All values of one repeated field, which may stand in several places of the message.
cdef class Payload:
    cdef Source source
    cdef Range* ranges
    cdef Py_ssize_t used, room
    cdef readonly int64_t n
    cdef int itemsize           # of a value, as `width_of` returns it
    cdef int add(self, const uint8_t* at, int64_t nbytes, int64_t n, bint packed) except -1

cdef Payload new_payload(Source source, int itemsize)
cdef int width_of(TypeMeta dtype, Kind* kind) except -2
cdef object elements_at(TensorImpl impl, int64_t begin, int64_t n, char** data)

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
