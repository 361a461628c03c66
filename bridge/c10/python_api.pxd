# SPDX-License-Identifier: Apache-2.0
"""Parts of CPython's C API that Cython's `cpython` package lacks or wraps at a cost."""

from cpython.object cimport PyObject, PyTypeObject

cdef extern from "Python.h":
    PyTypeObject* Py_TYPE(object)
    # Returns a borrowed reference; NULL: no such key.
    PyObject* PyDict_GetItemWithError(object, object) except? NULL

cdef enum:
    RELEASE_GIL_NBYTES = 1 << 16    # from so many bytes on, copying without the GIL pays
