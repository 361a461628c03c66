# SPDX-License-Identifier: Apache-2.0
"""Every slot of a CPython type that the package reads or sets itself, and why.

Each figure compares builds with and without that slot, 21 to 25 alternating rounds in one run, CPU
time (Python 3.11, torch 2.13). What bought less than a tenth of its row is gone: a function of our
own for NumPy's calls of ``__dlpack__`` (2 % of ``numpy.from_dlpack(x)``).
"""

from cpython.object cimport PyObject, PyTypeObject

ctypedef PyObject* (*vectorcall_function)(PyObject*, PyObject**, size_t, PyObject*) except NULL
ctypedef void (*dealloc_function)(PyObject*) noexcept

cdef extern from "Python.h":
    ctypedef void* newfunc
    ctypedef void* vectorcallfunc
    ctypedef struct TypeSlots "PyTypeObject":
        newfunc tp_new
        vectorcallfunc tp_vectorcall
        dealloc_function tp_dealloc
        PyObject* tp_dict
    ctypedef struct MethodDef "PyMethodDef":
        pass
    ctypedef struct MethodDescr "PyMethodDescrObject":
        MethodDef* d_method
    object PyDescr_NewMethod(PyTypeObject*, MethodDef*)
    void PyType_Modified(PyTypeObject*)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    PyTypeObject* type_of "Py_TYPE"(PyObject*)
    Py_ssize_t refcount_of "Py_REFCNT"(PyObject*)
    void track "PyObject_GC_Track"(PyObject*)
    void untrack "PyObject_GC_UnTrack"(PyObject*)


# tp_new: classes that only compiled code instantiates.
#
# What `cls(...)` or `cls.__new__(cls)` created would lack fields that every user of the class takes
# to be set, so both raise TypeError. Compiled code of the class's own module does not use the slot.
# Costs and buys no time.

cdef inline PyObject* _refuse_new(
    PyTypeObject* cls, PyObject* args, PyObject* kwargs,
) except NULL:
    raise TypeError(
        f"{(<object><PyObject*>cls).__name__} objects are not created by calling the class; its "
        "docstring says where they come from.")


cdef inline int forbid_calling(object cls) except -1:
    """Make ``cls(...)`` and ``cls.__new__(cls)`` raise TypeError."""
    (<TypeSlots*><PyObject*>cls).tp_new = <newfunc>_refuse_new
    return 0


# tp_new of Device (c10/device.pyx), a subclass of `str`: Cython passes the arguments of the class
# on to the base, and those that name a device are not those of `str`.

ctypedef object (*new_function)(object cls, object args, PyObject* kwargs)
ctypedef PyObject* (*checked_new)(PyObject* cls, PyObject* args, PyObject* kwargs) except NULL


cdef inline new_function new_of(object cls) noexcept:
    return <new_function>(<TypeSlots*><PyObject*>cls).tp_new


cdef inline int set_new(object cls, checked_new function) except -1:
    """Make `function` create the objects of `cls` and of its subclasses."""
    (<TypeSlots*><PyObject*>cls).tp_new = <newfunc>function
    return 0


# tp_new of classes written in Python, read and never set: `RunOperatorOnce` creates its operator
# without calling the class, so without ``__init__``, and fills the fields in C.

cdef extern from *:
    """
    static CYTHON_UNUSED PyObject *bridge_new_instance(PyObject *cls, PyObject *no_args) {
        return ((PyTypeObject *)cls)->tp_new((PyTypeObject *)cls, no_args, NULL);
    }
    """
    object new_instance "bridge_new_instance"(object cls, tuple no_args)


# tp_vectorcall: `at.Tensor(x)` and `caffe2.Tensor(x)` without a tuple and a dict of arguments.
#
# `type(x)(...)` calls this slot first. It is not inherited, so subclasses are constructed the
# ordinary way. Saves 26 % of `at.Tensor(x)`.

cdef inline int set_constructor(object cls, vectorcall_function function) except -1:
    """Make ``cls(...)`` call `function`; subclasses go on calling ``__init__``."""
    (<TypeSlots*><PyObject*>cls).tp_vectorcall = <vectorcallfunc>function
    return 0


cdef inline int call_init(
    object self, PyObject** args, size_t nargsf, PyObject* names,
) except -1:
    """Call ``self.__init__`` with the arguments of a vectorcall."""
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf)
    cdef Py_ssize_t i
    positional = tuple([<object>args[i] for i in range(n)])
    keywords = {}
    if names != NULL:
        for i, name in enumerate(<object>names):
            keywords[name] = <object>args[n + i]
    self.__init__(*positional, **keywords)
    return 0


# tp_dealloc, three times.
#
# Wrappers (at/tensor.pyx, caffe2/tensor/tensor.pyx): they add no field to Wrapper, so Wrapper's own
# function is enough, without the second pass through the garbage collector that a compiled subclass
# otherwise makes. Saves 32 % of `caffe2.Tensor(x)`.
#
# at.Tensor (at/tensor.pyx): freed objects are kept, without memory, for the next ones, since every
# import and every view creates one. Saves 19 % of `x[0]`, 6 % of `from_dlpack(numpy)` and 3 % of
# `from_dlpack(torch)`.
#
# TensorImpl (c10/tensor_impl.pyx): most have a Storage of their own and are freed together with it.
# Such pairs are kept, without memory, for the next tensors. Saves 15 % of `from_dlpack(numpy)`,
# 14 % of `at.empty` and 9 % of `from_dlpack(torch)`. Instead of __dealloc__, which Cython wraps in
# saving the pending exception and reviving the object for its duration.

cdef inline dealloc_function dealloc_of(object cls) noexcept:
    return (<TypeSlots*><PyObject*>cls).tp_dealloc


cdef inline int set_dealloc(object cls, dealloc_function function) except -1:
    """Make `function` free the objects of `cls`, but not of its subclasses."""
    (<TypeSlots*><PyObject*>cls).tp_dealloc = function
    return 0


cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define BRIDGE_MAX_CACHED 0     /* the list has no lock */
    #else
    #define BRIDGE_MAX_CACHED 64
    #endif
    /* The freed but kept object `o` as a new reference, its fields as they were left. */
    static CYTHON_INLINE PyObject *bridge_revive(PyObject *o) {
        Py_SET_REFCNT(o, 1);
        PyObject_GC_Track(o);
        return o;
    }
    static CYTHON_INLINE void bridge_clear_weakrefs(PyObject *o) {
        if (*(PyObject **)((char *)o + Py_TYPE(o)->tp_weaklistoffset)) PyObject_ClearWeakRefs(o);
    }
    """
    int MAX_CACHED "BRIDGE_MAX_CACHED"
    object revive "bridge_revive"(PyObject*)
    void clear_weakrefs "bridge_clear_weakrefs"(PyObject*)


# tp_dict: names added to a compiled class after its creation. at.Tensor gets torch's methods when
# torch is first seen. Buys no time; ``setattr`` refuses compiled classes.

cdef inline int add_to_class(object cls, str name, object value) except -1:
    """Set an attribute of a compiled class, before any object of it depends on the name."""
    (<dict>(<TypeSlots*><PyObject*>cls).tp_dict)[name] = value
    PyType_Modified(<PyTypeObject*><PyObject*>cls)
    return 0


# The same for methods of the base class: CPython's specialised call needs a descriptor of exactly
# the object's class. Saves 18 % of `x.sizes()`, 11 % of `x.to_torch()` of an import and 8 % of
# `x.numpy()`.

cdef inline int own_methods(object cls, object base, tuple names) except -1:
    """Give `cls` descriptors of its own of the methods `names` of its base class."""
    for name in names:
        add_to_class(cls, name, PyDescr_NewMethod(
            <PyTypeObject*>cls, (<MethodDescr*><PyObject*>base.__dict__[name]).d_method))
    return 0


# ml_meth and get of other packages' compiled classes: the C functions behind `Tensor.is_neg`,
# `Tensor.requires_grad` and the like, read and never set. Calling them saves 14 % of
# `from_dlpack(torch)`. The caller keeps the descriptor alive.

ctypedef PyObject* (*c_method)(PyObject*, PyObject*) noexcept
ctypedef PyObject* (*c_getter)(PyObject*, void*) noexcept

cdef extern from *:
    """
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
    # NULL where `descr` is not a method without arguments, or not a property, in C.
    c_method noargs_function "bridge_noargs"(PyObject* descr)
    c_getter getter_function "bridge_getter"(PyObject* descr, void** closure)


# tp_flags and tp_vectorcall_offset of CallableAttribute (c10/attribute.pyx): `x.dtype()` calls the
# descriptor with `x`, as CPython calls methods, instead of reading the attribute and calling that.
# Saves 42 % of `x.dtype()`.

ctypedef object (*method_call)(PyObject* descriptor, PyObject** args, size_t, PyObject* names)

cdef extern from *:
    """
    static CYTHON_UNUSED void bridge_make_method_descriptor(PyObject *cls, Py_ssize_t offset) {
        PyTypeObject *type = (PyTypeObject *)cls;
        type->tp_vectorcall_offset = offset;
        type->tp_call = PyVectorcall_Call;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
        PyType_Modified(type);
    }
    """
    void make_method_descriptor "bridge_make_method_descriptor"(object cls, Py_ssize_t offset)
