# SPDX-License-Identifier: Apache-2.0
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
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

cdef int64_t index_to_int64(object value, str caller) except? -1


cdef inline int64_t to_int64(object value, str caller) except? -1:
    """Return an int64 for anything with ``__index__``.

    Raises EnforceTypeError: `value` is not an integer. EnforceValueError: it does not fit an int64.
    """
    cdef int overflow = 0
    cdef int64_t result
    if PyLong_CheckExact(value):
        result = PyLong_AsLongLongAndOverflow(value, &overflow)
        if not overflow:
            return result
    return index_to_int64(value, caller)
