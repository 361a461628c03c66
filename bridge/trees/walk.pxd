# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject, PyTypeObject


# A container that is being walked through: its key now, and the container around it.
cdef struct Frame:
    Frame* outer
    int kind            # INDEX, KEY or STEP
    Py_ssize_t index
    PyObject* key


cdef struct Entry:
    PyObject* key       # owned
    PyObject* value     # owned; NULL while the container is being walked through


cdef class Visitor:
    cdef Entry* entries
    cdef Py_ssize_t mask, used
    cdef int depth
    cdef Frame* top
    cdef PyTypeObject* last     # a class of leaves; `classes` keeps it
    cdef dict classes

    cdef object leaf(self, object x)
    cdef object scalar(self, object x)
    cdef object kept_leaf(self, object x)
    cdef object visit(self, object x)
    cdef object _leaf_once(self, object x)
    cdef object _other(self, object x, int kind)
    cdef object _container(self, object x, int kind)
    cdef object _list(self, list x)
    cdef object _tuple(self, tuple x)
    cdef object _dict(self, dict x)
    cdef object _node(self, object x)
    cdef int _kind(self, object x) except -1
    cdef Entry* _find(self, PyObject* key) noexcept
    cdef Entry* _put(self, object key) except NULL
    cdef int _grow(self) except -1
    cdef str path(self)
    cdef tuple keys(self)
