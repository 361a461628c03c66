# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Decoding of the fields of any message, one by one, without copying.

Refuses the messages that protobuf's C++ library refuses. Every length is compared with the bytes
that are left, so no input leads to a read outside of the message.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bridge.c10.python_api cimport RELEASE_GIL_NBYTES
from bridge.wire.tensor_decoding cimport Payload, Source
from bridge.wire.varints cimport count_packed, read_varint

from bridge.c10.errors import EnforceValueError

cdef enum:
    MAX_DEPTH = 100         # protobuf's own limit


cdef object malformed(Source source, const uint8_t* at, str what):
    """Return the error for bytes at `at` that are not a message."""
    return EnforceValueError(
        f"At byte {at - source.begin} of {source.end - source.begin}: {what}.")


cdef const uint8_t* _next(
    Source source, const uint8_t* at, const uint8_t* end, Field* field, bint within_group,
) except NULL:
    """Decode a field's tag and find its value; return where the next field begins."""
    cdef uint64_t tag = 0
    field.tag = at
    at = read_varint(at, end, &tag)
    if at == NULL or at - field.tag > 5:
        raise malformed(source, field.tag, "a field does not begin with a tag")
    field.number = <uint32_t>tag >> 3
    field.wire = tag & 7
    field.at = at
    if field.number == 0:
        raise malformed(source, field.tag, "a field has the number 0, which is not allowed")
    if field.wire == VARINT:
        at = read_varint(at, end, &field.value)
        if at == NULL:
            raise malformed(source, field.at, f"the number of field {field.number} is cut short")
    elif field.wire == FIXED32 or field.wire == FIXED64:
        if end - at < (4 if field.wire == FIXED32 else 8):
            raise malformed(source, field.at, f"the number of field {field.number} is cut short")
        at += 4 if field.wire == FIXED32 else 8
    elif field.wire == BYTES:
        at = read_varint(at, end, &field.value)
        if at == NULL or at - field.at > 5 or field.value > <uint64_t>(end - at):
            raise malformed(
                source, field.at, f"field {field.number} is longer than the message around it")
        field.at = at
        at += field.value
    elif field.wire == GROUP:
        at = _skip_group(source, at, end, field.number, field.depth + 1)
    elif not (field.wire == END_GROUP and within_group):
        raise malformed(
            source, field.tag, f"field {field.number} has the wire type {field.wire}, which "
            + ("ends a group that did not begin" if field.wire == END_GROUP else "does not exist"))
    field.stop = at
    return at


cdef const uint8_t* next_field(
    Source source, const uint8_t* at, const uint8_t* end, Field* field,
) except NULL:
    """Decode one field of a message and return where the next one begins.

    A group is one field. Raises EnforceValueError: the bytes are not a message.
    """
    return _next(source, at, end, field, False)


cdef const uint8_t* _skip_group(
    Source source, const uint8_t* at, const uint8_t* end, uint32_t number, int depth,
) except NULL:
    """Skip a group with all its fields; no message of Caffe2 or TensorFlow has one."""
    cdef Field field
    cdef const uint8_t* begin = at
    field.depth = depth
    if depth > MAX_DEPTH:
        raise malformed(source, at, f"groups are more than {MAX_DEPTH} deep")
    while at < end:
        at = _next(source, at, end, &field, True)
        if field.wire == END_GROUP:
            if field.number != number:
                raise malformed(
                    source, field.tag, f"group {number} ends as group {field.number}")
            return at
    raise malformed(source, begin, f"group {number} has no end")


cdef int add_values(Source source, Payload payload, Field* field, Wire wire) except -1:
    """Add the values of a repeated field of type `wire`, packed or not; ignore other wire types."""
    cdef int64_t nbytes = field.value
    cdef int64_t n
    cdef const uint8_t* at = field.at
    if field.wire == wire:
        payload.add(field.tag, field.stop - field.tag, 1, False)
    elif field.wire == BYTES:
        if wire == VARINT:
            if nbytes > RELEASE_GIL_NBYTES:
                with nogil:
                    n = count_packed(at, nbytes)
            else:
                n = count_packed(at, nbytes)
        else:
            n = nbytes // payload.itemsize if nbytes % payload.itemsize == 0 else -1
        if n < 0:
            raise malformed(source, at, f"the numbers of field {field.number} are cut short")
        if n:
            payload.add(at, nbytes, n, True)
    return 0


cdef tuple span(Source source, Field* field):
    """Return (offset, length) of the bytes of a length-delimited field."""
    return field.at - source.begin, <int64_t>field.value
