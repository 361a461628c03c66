# SPDX-License-Identifier: Apache-2.0
"""Dead objects that are kept, with their memory and fields, to be the next ones of their class."""

from cpython.object cimport PyObject, PyTypeObject

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define BRIDGE_MAX_DEAD 0   /* a list without a lock */
    #else
    #define BRIDGE_MAX_DEAD 64
    #endif
    /* The dead object `o` as a new reference, alive again, its fields as they were left. */
    static CYTHON_INLINE PyObject *bridge_revive(PyObject *o) {
        Py_SET_REFCNT(o, 1);
        PyObject_GC_Track(o);
        return o;
    }
    static CYTHON_INLINE void bridge_clear_weakrefs(PyObject *o) {
        if (*(PyObject **)((char *)o + Py_TYPE(o)->tp_weaklistoffset)) PyObject_ClearWeakRefs(o);
    }
    """
    int MAX_DEAD "BRIDGE_MAX_DEAD"      # of a class
    object revive "bridge_revive"(PyObject*)
    void clear_weakrefs "bridge_clear_weakrefs"(PyObject*)

cdef extern from "Python.h":
    PyTypeObject* type_of "Py_TYPE"(PyObject*)
    void untrack "PyObject_GC_UnTrack"(PyObject*)
