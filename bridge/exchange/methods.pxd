# SPDX-License-Identifier: Apache-2.0
# The C functions behind methods and properties of compiled classes: calling them takes a third
# of the time of Python's method lookup.
from cpython.object cimport PyObject

ctypedef PyObject* (*c_method)(PyObject*, PyObject*) noexcept
ctypedef PyObject* (*c_getter)(PyObject*, void*) noexcept

cdef extern from *:
    """
    /* A method descriptor's C function, if it takes no arguments; NULL otherwise. */
    static CYTHON_UNUSED PyCFunction bridge_noargs(PyObject *descr) {
        if (!Py_IS_TYPE(descr, &PyMethodDescr_Type)) return NULL;
        PyMethodDef *def = ((PyMethodDescrObject *)descr)->d_method;
        return def->ml_flags == METH_NOARGS ? def->ml_meth : NULL;
    }
    static CYTHON_UNUSED getter bridge_getter(PyObject *descr, void **closure) {
        if (!Py_IS_TYPE(descr, &PyGetSetDescr_Type)) return NULL;
        *closure = ((PyGetSetDescrObject *)descr)->d_getset->closure;
        return ((PyGetSetDescrObject *)descr)->d_getset->get;
    }
    """
    c_method bridge_noargs(PyObject*)
    c_getter bridge_getter(PyObject*, void**)
