# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

cdef enum:
    INLINE_DIMS = 6     # values that need no block of their own

cdef class ArrayRef:
    cdef const int64_t* ptr
    cdef Py_ssize_t n
    cdef object owner                   # keeps what `ptr` points to; None: `inline`, or malloc
    cdef bint allocated                 # `ptr` came from malloc
    cdef int64_t[INLINE_DIMS] inline
    cdef int64_t* allocate(self, Py_ssize_t n) except NULL
    cdef int read(self, tuple values) except -1
    cdef int view(self, object source) except -1
    cdef object keeper(self)
    cdef ArrayRef part(self, Py_ssize_t start, Py_ssize_t n)

cdef ArrayRef array_ref_of(const int64_t* values, Py_ssize_t n)
