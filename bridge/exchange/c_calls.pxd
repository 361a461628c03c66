# SPDX-License-Identifier: Apache-2.0
# What a C function called by pointer leaves behind: a new reference, or an exception pending in
# the thread. (Where a function is declared `noexcept`, Cython does not look for one itself.)
from cpython.object cimport PyObject

cdef extern from "Python.h":
    PyObject* PyErr_Occurred()
    void drop_reference "Py_DECREF"(PyObject*)


cdef inline int raise_pending() except -1:
    # with the exception that the C function has set
    return -1


cdef inline object take_pending():
    # The pending exception, which is cleared; None if there is none.
    if PyErr_Occurred() == NULL:
        return None
    try:
        raise_pending()
    except Exception as error:
        return error


cdef inline object owned(PyObject* reference):
    # The object of a new reference; NULL raises the pending exception.
    if reference == NULL:
        raise_pending()
    found = <object>reference
    drop_reference(reference)       # <object> has added one
    return found
