# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.shared.mapping cimport Mapping

cdef class Segment:
    cdef Mapping* mapping

    cdef int put(self, const char* data, int64_t nbytes, int64_t begin) except -1
    cdef int make_room(self, int64_t nbytes, int64_t begin) except -1

cdef Segment segment_at(const char* begin, int64_t nbytes)
