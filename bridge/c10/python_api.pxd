# SPDX-License-Identifier: Apache-2.0
"""CPython's C API where Cython's `cpython` package lacks a function, or checks at a cost."""

from cpython.object cimport PyObject, PyTypeObject

cdef extern from "Python.h":
    PyTypeObject* Py_TYPE(object)
    PyObject* PyErr_Occurred()
    # Returns a borrowed reference; NULL: the key is missing.
    PyObject* PyDict_GetItemWithError(object, object) except? NULL
    PyObject* PyList_GET_ITEM(list, Py_ssize_t)     # a borrowed reference
    void drop_reference "Py_DECREF"(PyObject*) noexcept nogil

cdef enum:
    RELEASE_GIL_NBYTES = 1 << 16    # copying at least this many bytes is worth releasing the GIL


# A C function called by pointer returns a new reference, or leaves an exception pending in the
# thread. Where it is declared `noexcept`, Cython does not check which.

# Raise the pending exception.
cdef inline int raise_pending() except -1:
    return -1


# Clear the pending exception and return it; None if there is none. Raises one that is not an
# Exception, such as KeyboardInterrupt.
cdef inline object take_pending():
    if PyErr_Occurred() == NULL:
        return None
    try:
        raise_pending()
    except Exception as error:
        return error


# Return the object of a new reference; raise the pending exception if it is NULL.
cdef inline object owned(PyObject* reference):
    if reference == NULL:
        raise_pending()
    found = <object>reference
    drop_reference(reference)       # <object> has added one
    return found
