# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from bridge.c10.handle cimport Handle
from bridge.c10.tensor_impl cimport TensorImpl

cdef class Wrapper(Handle):
    pass

ctypedef PyObject* (*construct)(PyObject*, PyObject**, size_t, PyObject*) except NULL
cdef void set_construct(object cls, construct function)
cdef int keep_the_dead_of(object cls) except -1
cdef Wrapper new_at(TensorImpl impl)
cdef int slow_construct(object self, PyObject** args, size_t nargsf, PyObject* names) except -1
cdef int add_to_class(object cls, str name, object value) except -1
cdef int inherit_metadata(object cls) except -1
