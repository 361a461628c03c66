# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

cdef enum:
    INLINE_DIMS = 6

cdef class ArrayRef:
    cdef const int64_t* ptr
    cdef Py_ssize_t n
    cdef object owner                   # keeps what ptr points to; None: `inline`, or malloc
    cdef bint allocated                 # ptr came from malloc
    cdef int64_t[INLINE_DIMS] inline
    cdef int own(self, const int64_t* values, Py_ssize_t n) except -1
    cdef int view(self, object source) except -1
    cdef object keeper(self)
    cdef ArrayRef part(self, Py_ssize_t start, Py_ssize_t n)

cdef extern from "Python.h":
    bint PyLong_CheckExact(object)
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1

cdef int64_t index_to_int64(object value, str caller) except? -1


cdef inline int64_t to_int64(object value, str caller) except? -1:
    """An int64 out of anything with ``__index__``."""
    cdef int overflow = 0
    cdef int64_t result
    if PyLong_CheckExact(value):
        result = PyLong_AsLongLongAndOverflow(value, &overflow)
        if not overflow:
            return result
    return index_to_int64(value, caller)


cdef ArrayRef array_ref_of(const int64_t* values, Py_ssize_t n)

# Sizes or strides that were read from Python arguments.
cdef class Dims:
    cdef int n
    cdef int64_t* data
    cdef int64_t[INLINE_DIMS] inline

cdef Dims new_dims(Py_ssize_t n)
cdef Dims parse_dims(object source, str caller)
cdef Dims parse_dims_args(tuple args, str caller)
