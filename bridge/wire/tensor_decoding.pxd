# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uint8_t

from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta
from bridge.wire.varints cimport Kind

cdef enum:
    STRING_TAG = (6 << 3) | 2   # TensorProto.string_data

# How the elements of a type are encoded in a message.
cdef enum Coding:
    FIXED               # as in memory
    VARINT
    STRING              # a length and bytes each

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
    cdef int itemsize           # of a value with fixed width; 0: varints; -1: strings
    cdef int add(self, const uint8_t* at, int64_t nbytes, int64_t n, bint packed) except -1

cdef Payload new_payload(Source source, int itemsize)
cdef Coding coding_of(TypeMeta dtype, Kind* kind) except *
cdef object elements_at(TensorImpl impl, int64_t begin, int64_t n, char** data)
