# SPDX-License-Identifier: Apache-2.0
"""Dead objects kept for the next of their type, with fields that need not be made again.

What Cython's freelist does not do: it clears an object and all that it held.
"""

from cpython.object cimport PyObject, PyTypeObject

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define BRIDGE_MAX_KEPT 0   /* lists without a lock */
    #else
    #define BRIDGE_MAX_KEPT 64
    #endif
    /* The dead object `o` as a new reference to an object of `type`, its fields as left. */
    static CYTHON_INLINE PyObject *bridge_revive(PyObject *o, PyTypeObject *type) {
        PyObject_Init(o, type);
        PyObject_GC_Track(o);
        return o;
    }
    """
    int MAX_KEPT "BRIDGE_MAX_KEPT"
    object revive "bridge_revive"(PyObject* o, PyTypeObject* type)

cdef extern from "Python.h":
    PyTypeObject* type_of "Py_TYPE"(PyObject*)
    Py_ssize_t refcount_of "Py_REFCNT"(PyObject*)
    void clear_weakrefs "PyObject_ClearWeakRefs"(PyObject*)
    void track "PyObject_GC_Track"(PyObject*)
    void untrack "PyObject_GC_UnTrack"(PyObject*)
