# SPDX-License-Identifier: Apache-2.0
"""Classes whose objects only compiled code makes."""

from cpython.object cimport PyObject, PyTypeObject

cdef extern from "Python.h":
    ctypedef PyObject* (*newfunc)(PyTypeObject*, PyObject*, PyObject*) except NULL
    ctypedef struct SealedType "PyTypeObject":
        newfunc tp_new


cdef inline PyObject* _refuse_new(
    PyTypeObject* cls, PyObject* args, PyObject* kwargs,
) except NULL:
    raise TypeError(
        f"{(<object><PyObject*>cls).__name__} objects are not made by calling the class; its "
        "docstring says where they come from.")


# `cls(...)` and `cls.__new__(cls)` raise TypeError. What Python made so would lack the fields
# that every user of the class takes to be set. Compiled code of the class's own module makes
# objects without this slot, so it costs them nothing.
cdef inline int seal(object cls) except -1:
    (<SealedType*><PyObject*>cls).tp_new = _refuse_new
    return 0
