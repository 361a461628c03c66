# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Anything that has a tensor's memory to a TensorImpl: one ladder of producers.

A type is looked at once. What was found, which of the ways below it offers, is
remembered for the type.
"""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_CheckExact

from bridge.c10.copy cimport requested_copy
from bridge.c10.device cimport as_device
from bridge.c10.python_api cimport Py_TYPE
from bridge.c10.storage cimport EXTERNAL
from bridge.c10.tensor_impl cimport OWN_ORIGIN, TensorImpl
from bridge.c10.views cimport alias
from bridge.dlpack.capsule cimport consume_capsule
from bridge.exchange.buffers cimport buffer_in, held_buffer
from bridge.exchange.incoming cimport adopt_managed
from bridge.exchange.numpy cimport (
    array_in,
    meet_numpy,
    numpy_array_type,
    numpy_generic_type,
)
from bridge.exchange.producers cimport by_method, by_table
from bridge.exchange.torch cimport (
    any_tensor_in,
    meet_torch,
    tensor_in,
    torch_parameter_type,
    torch_tensor_type,
)

from weakref import WeakKeyDictionary

from bridge.exchange.adapters import bringer, buffered
from bridge.exchange.array_interface import check_interface
from bridge.exchange.transfer import to_device

cdef enum:
    UNKNOWN = 0
    OURS = 1            # one of our wrappers
    TORCH = 2           # torch.Tensor or a subclass
    NUMPY = 3           # numpy.ndarray or a subclass
    TABLE = 4           # has __dlpack_c_exchange_api__
    DLPACK = 5          # has __dlpack__
    CAPSULE = 6
    BUFFER = 7
    INTERFACE = 8       # has __array_interface__ or __cuda_array_interface__
    ADAPTED = 9         # of a framework that has an adapter; see bridge.exchange.adapters
    NOTHING = 10
    HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
    QUICK = 8

# type -> one of the above; weak, so that classes can go, for those that can
cdef object _ways = WeakKeyDictionary()
cdef dict _lasting_ways = {}
# classes of the frameworks -> the adapter's function that brings in their objects
cdef dict _bringers = {}
# and those of them that have a function in C, which gives None for what takes a second look
cdef (PyTypeObject*)[QUICK] _quick_types
cdef bring_quickly[QUICK] _quick_functions
cdef int _n_quick = 0
cdef object _wrapper_class = None
cdef object _impl_of = None


def set_wrapper(cls, impl_of):
    """Say which class our wrappers have in common, and how to get at their TensorImpl."""
    global _wrapper_class, _impl_of
    _wrapper_class = cls
    _impl_of = impl_of


cdef object tristate(object copy):
    """`copy`, which is True, False or None; TypeError where it is anything else."""
    if copy is not None and copy is not True and copy is not False:
        raise TypeError(f"copy is True, False or None, not {copy!r}.")
    return copy


cpdef TensorImpl ingest(object x, object device=None, object copy=None):
    """The TensorImpl of anything that has a tensor's memory, shared where it can be.

    `copy`: True copies always, False never (BufferError where it would have to),
    None where it must. `device`: copy there if it is elsewhere.

    Raises BufferError: the memory cannot be exchanged, and why. TypeError: `x`
    has no tensor's memory at all.
    """
    cdef TensorImpl impl, moved
    cdef PyTypeObject* cls = Py_TYPE(x)
    cdef int i
    if copy is None and device is None:
        if cls == torch_tensor_type or cls == torch_parameter_type and cls != NULL:
            return tensor_in(x, None)
        if <PyObject*>cls == <PyObject*>numpy_array_type:
            return array_in(x, None)
        for i in range(_n_quick):
            if _quick_types[i] == cls:
                impl = _quick_functions[i](x)
                if impl is not None:
                    return impl
    elif copy is False and device is None and cls == torch_tensor_type:
        return tensor_in(x, False)
    elif copy is not None:
        tristate(copy)
    if device is None:
        return _brought(x, copy)
    # a copy that is asked for is made on the way there, and not before as well
    impl = _brought(x, False if copy is False else None)
    moved = <TensorImpl>to_device(impl, as_device(device), copy)
    if copy is True and moved is impl and not is_new(x, impl):
        return requested_copy(impl, "from_dlpack")
    return moved


cdef bint is_new(object x, TensorImpl impl) except -1:
    """Whether `x` had to be copied to come in as `impl`, so that nobody else has the memory."""
    return not isinstance(x, _wrapper_class) and not impl.storage.flags & EXTERNAL


cdef TensorImpl _brought(object x, object copy):
    """The TensorImpl of `x` where it is."""
    bring = _bringers.get(type(x))
    return _by_way(x, copy) if bring is None else _adapted(bring, x, copy)


cdef TensorImpl _adapted(object bring, object x, object copy):
    cdef TensorImpl impl = bring(x, copy)
    if impl is None:
        return _by_way(x, copy, False)      # the adapter leaves it to the others
    if copy is True and not is_new(x, impl):
        return requested_copy(impl, "from_dlpack")
    return impl


cdef TensorImpl _by_way(object x, object copy, bint adapted=True):
    cdef TensorImpl impl
    cdef int way = _lasting_ways.get(type(x), UNKNOWN)
    if way == UNKNOWN or not adapted:
        way = _ways.get(type(x), UNKNOWN) if adapted else _find_way(x, False)
    if way == UNKNOWN:
        way = _find_way(x, True)
        if not type(x).__flags__ & HEAP_TYPE:
            _lasting_ways[type(x)] = way
        elif not isinstance(x, type):
            _ways[type(x)] = way
    if way == TORCH:
        return any_tensor_in(x, copy)
    if way == NUMPY:
        return array_in(x, copy)
    if way == OURS:
        impl = alias_out(<TensorImpl>_impl_of(x))
    elif way == TABLE:
        impl = by_table(x, copy)
    elif way == DLPACK:
        impl = by_method(x, copy)
    elif way == CAPSULE:
        return adopt_managed(consume_capsule(x), 0, copy)
    elif way == BUFFER:
        return _by_buffer(x, copy)
    elif way == INTERFACE:
        return _by_interface(x, copy)
    elif way == ADAPTED:
        return _adapted(_bringer(type(x)), x, copy)
    else:
        raise TypeError(
            f"{_describe(x)} has no tensor's memory: neither __dlpack__, nor a buffer, nor an "
            "array interface, nor is it a DLPack capsule. bridge.asarray takes Python scalars, "
            "lists and strings, too.")
    if copy is True:
        return requested_copy(impl, "from_dlpack")
    return impl


def _describe(x):
    if isinstance(x, type):
        return f"The class {x.__name__!r} itself (not an object of it)"
    return f"An object of type {type(x).__module__}.{type(x).__qualname__}"


cdef int bring_quickly_in(object cls, bring_quickly function) except -1:
    """Have `function` bring in the objects of exactly `cls`, a class that lasts, from now on."""
    global _n_quick
    if _n_quick < QUICK:
        _bringers[cls] = _bringers.get(cls)     # keeps the class
        _quick_types[_n_quick] = <PyTypeObject*>cls
        _quick_functions[_n_quick] = function
        _n_quick += 1
    return 0


cdef object _bringer(object cls):
    """The function of the adapter for a class of a framework's; None: there is none."""
    bring = bringer(cls)
    if bring is not None and bringer(cls, own=True) is not None:
        _bringers[cls] = bring      # a class of the framework itself, which stays
        if buffered(cls):
            bring_quickly_in(cls, held_buffer)
    return bring


cdef int _find_way(object x, bint adapted) except -1:
    """Which way leads to the memory of objects of this type; imports no framework."""
    cls = type(x)
    if isinstance(x, type):
        return NOTHING
    if _wrapper_class is not None and isinstance(x, _wrapper_class):
        return OURS
    if meet_torch() and issubclass(cls, <object>torch_tensor_type):
        return TORCH
    if meet_numpy() and issubclass(cls, numpy_array_type):
        return NUMPY
    if PyCapsule_CheckExact(x):
        return CAPSULE
    if adapted and _bringer(cls) is not None:
        return ADAPTED
    if hasattr(cls, "__dlpack_c_exchange_api__"):
        return TABLE
    if hasattr(cls, "__dlpack__"):
        return DLPACK
    if PyObject_CheckBuffer(x):
        return BUFFER
    if hasattr(cls, "__cuda_array_interface__") or hasattr(cls, "__array_interface__") \
            or hasattr(cls, "__array_struct__"):
        return INTERFACE
    # set on the object and not on its class; remembered for neither
    if hasattr(x, "__dlpack__"):
        return DLPACK
    if hasattr(x, "__array_interface__") or hasattr(x, "__cuda_array_interface__"):
        return INTERFACE
    return NOTHING


cdef TensorImpl alias_out(TensorImpl impl):
    """Another TensorImpl over the same Storage, for exchange: allocated and POD."""
    cdef TensorImpl out
    if impl.storage is None:
        raise BufferError("The tensor is undefined, so it has no memory to exchange.")
    if not impl.c_dtype.c_is_pod:
        what = f"elements of the non-POD type {impl.c_dtype}" if impl.c_dtype else \
            "no element type yet"
        raise BufferError(
            f"The tensor has {what}, so there is no plain memory to exchange. "
            "Read the elements through data().")
    impl.data("from_dlpack")
    out = alias(impl, "from_dlpack")
    if not impl.flags & OWN_ORIGIN:
        out.origin = impl.origin
    return out


cdef TensorImpl _by_buffer(object x, object copy):
    # NumPy's scalars: the buffers of some, times and strings, hide their type
    if meet_numpy() and isinstance(x, numpy_generic_type) and x.dtype.kind not in "biufc":
        if copy is False:
            raise BufferError(
                f"A scalar of {x.dtype!r} has no memory to share. Allow a copy with copy=None.")
        import numpy
        return array_in(numpy.asarray(x), None)
    return buffer_in(x, copy)


def _interface(x, name):
    """What `x` says of itself; None: it says nothing."""
    try:
        return getattr(x, name, None)
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.{name} does not say where the memory is: {error}") from error


cdef TensorImpl _by_interface(object x, object copy):
    """The memory that ``__array_interface__`` or ``__cuda_array_interface__`` describes."""
    interface = _interface(x, "__cuda_array_interface__")
    if interface is not None:
        from bridge.exchange.cuda_interface import described
        impl = described(x, interface)
        return requested_copy(impl, "from_dlpack") if copy is True else impl
    import numpy
    if not meet_numpy():
        raise ImportError("NumPy is imported and not to be found.")
    interface = _interface(x, "__array_interface__")
    if interface is not None:
        check_interface(x, interface)
    try:
        array = numpy.asarray(x)
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.__array_interface__ describes no array: {error}") from error
    return array_in(array, copy)
