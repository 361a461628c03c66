# SPDX-License-Identifier: Apache-2.0
from bridge.c10.handle cimport Handle

cdef class Wrapper(Handle):
    pass

cdef int inherit_metadata(object cls) except -1
