# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""From any object that has a tensor's memory to TensorImpl: one ordered list of protocols.

Which protocol a class is imported by is found out once and remembered for the class.
"""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_CheckExact

from bridge.c10.copy cimport requested_copy
from bridge.c10.device cimport as_device
from bridge.c10.handle cimport Handle
from bridge.c10.python_api cimport Py_TYPE
from bridge.c10.storage cimport EXTERNAL
from bridge.c10.tensor_impl cimport OWN_ORIGIN, TensorImpl
from bridge.c10.views cimport alias
from bridge.dlpack.capsule cimport consume_capsule
from bridge.exchange.buffer_import cimport fast_import_buffer, import_buffer
from bridge.exchange.dlpack_import cimport adopt_managed
from bridge.exchange.numpy cimport (
    import_array,
    numpy_loaded,
    numpy_array_type,
    numpy_generic_type,
)
from bridge.exchange.dlpack_producers cimport import_by_method, import_by_table
from bridge.exchange.torch_api cimport torch_c, torch_loaded
from bridge.exchange.torch_import cimport import_any_torch, import_torch

from weakref import WeakKeyDictionary

from bridge.exchange.adapters import importer_of, prefers_buffer
from bridge.exchange.array_interface import check_interface
from bridge.exchange.to_device import to_device

# The protocols, in the order in which they are tried.
cdef enum:
    UNKNOWN = 0
    WRAPPER = 1         # one of the bridge's own tensor classes
    TORCH = 2           # torch.Tensor or a subclass
    NUMPY = 3           # numpy.ndarray or a subclass
    CAPSULE = 4         # a DLPack capsule
    ADAPTER = 5         # a framework's class; see bridge.exchange.adapters
    TABLE = 6           # has __dlpack_c_exchange_api__
    DLPACK = 7          # has __dlpack__
    BUFFER = 8          # exports a buffer
    INTERFACE = 9       # has __array_interface__, __array_struct__ or __cuda_array_interface__
    NOTHING = 10
    HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
    MAX_FAST = 8

# class -> protocol; classes of Python are held weakly, so that they can be collected
cdef object _protocols = WeakKeyDictionary()
cdef dict _static_protocols = {}
# class of a framework -> the adapter's import_; these classes live as long as the process
cdef dict _importers = {}
# Those of them with a C function, which returns None for what needs a closer look.
cdef (PyTypeObject*)[MAX_FAST] _fast_types
cdef fast_import[MAX_FAST] _fast_imports
cdef int _n_fast = 0


cdef object tristate(object copy):
    """Return `copy`. Raises TypeError: it is not True, False or None."""
    if copy is not None and copy is not True and copy is not False:
        raise TypeError(f"copy is True, False or None, not {copy!r}.")
    return copy


cpdef TensorImpl import_tensor(object x, object device=None, object copy=None):
    """Return the TensorImpl of any object with a tensor's memory, shared if possible.

    `copy`: True always copies, False never (BufferError if necessary), None if necessary.
    `device`: copy there if the memory is elsewhere.

    Raises BufferError: the memory cannot be exchanged, with the reason. TypeError: `x` has no
    tensor's memory.
    """
    cdef TensorImpl impl, moved
    cdef PyTypeObject* cls = Py_TYPE(x)
    cdef int i
    if copy is None and device is None:
        if cls == torch_c.tensor_type or cls == torch_c.parameter_type and cls != NULL:
            return import_torch(x, None)
        if <PyObject*>cls == <PyObject*>numpy_array_type:
            return import_array(x, None)
        for i in range(_n_fast):
            if _fast_types[i] == cls:
                impl = _fast_imports[i](x)
                if impl is not None:
                    return impl
    elif copy is False and device is None and cls == torch_c.tensor_type:
        return import_torch(x, False)
    elif copy is not None:
        tristate(copy)
    if device is None:
        return _import(x, copy)
    # moving to another device is the copy that copy=True asks for
    impl = _import(x, False if copy is False else None)
    moved = <TensorImpl>to_device(impl, as_device(device), copy)
    if copy is True and moved is impl and not is_new(x, impl):
        return requested_copy(impl, "from_dlpack")
    return moved


cdef bint is_new(object x, TensorImpl impl) except -1:
    """Return whether importing `x` as `impl` copied it, so that nobody else has the memory."""
    return not isinstance(x, Handle) and not impl.storage.flags & EXTERNAL


cdef TensorImpl _import(object x, object copy):
    """Return the TensorImpl of `x` on its device."""
    import_ = _importers.get(type(x))
    return _import_by_protocol(x, copy) if import_ is None else _import_by_adapter(import_, x, copy)


cdef TensorImpl _import_by_adapter(object import_, object x, object copy):
    cdef TensorImpl impl = import_(x, copy)
    if impl is None:
        return _import_by_protocol(x, copy, False)      # the adapter leaves it to the protocols
    if copy is True and not is_new(x, impl):
        return requested_copy(impl, "from_dlpack")
    return impl


cdef TensorImpl _import_by_protocol(object x, object copy, bint with_adapter=True):
    cdef TensorImpl impl
    cdef int protocol = _static_protocols.get(type(x), UNKNOWN)
    if protocol == UNKNOWN or not with_adapter:
        protocol = _protocols.get(type(x), UNKNOWN) if with_adapter else _find_protocol(x, False)
    if protocol == UNKNOWN:
        protocol = _find_protocol(x, True)
        if not type(x).__flags__ & HEAP_TYPE:
            _static_protocols[type(x)] = protocol
        elif not isinstance(x, type):
            _protocols[type(x)] = protocol
    if protocol == TORCH:
        return import_any_torch(x, copy)
    if protocol == NUMPY:
        return import_array(x, copy)
    if protocol == WRAPPER:
        impl = _alias_of((<Handle>x).impl)
    elif protocol == TABLE:
        return import_by_table(x, copy)
    elif protocol == DLPACK:
        return import_by_method(x, copy)
    elif protocol == CAPSULE:
        return adopt_managed(consume_capsule(x), 0, copy)
    elif protocol == BUFFER:
        return _by_buffer(x, copy)
    elif protocol == INTERFACE:
        return _by_interface(x, copy)
    elif protocol == ADAPTER:
        return _import_by_adapter(_importer(type(x)), x, copy)
    else:
        raise TypeError(
            f"{_describe(x)} has no tensor's memory: neither __dlpack__, nor a buffer, nor an "
            "array interface, nor is it a DLPack capsule. bridge.asarray also takes Python "
            "scalars, lists and strings.")
    if copy is True:
        return requested_copy(impl, "from_dlpack")
    return impl


def _describe(x):
    if isinstance(x, type):
        return f"The class {x.__name__!r} itself (not an object of it)"
    return f"An object of type {type(x).__module__}.{type(x).__qualname__}"


cdef int register_fast_import(object cls, fast_import function) except -1:
    """Import objects of exactly `cls`, a class that is never deleted, by `function` from now on."""
    global _n_fast
    if _n_fast < MAX_FAST:
        _importers[cls] = _importers.get(cls)     # keeps the class alive
        _fast_types[_n_fast] = <PyTypeObject*>cls
        _fast_imports[_n_fast] = function
        _n_fast += 1
    return 0


cdef object _importer(object cls):
    """Return the adapter's function for a class of a framework; None if there is none."""
    import_ = importer_of(cls)
    if import_ is not None and importer_of(cls, own=True) is not None:
        _importers[cls] = import_      # a class of the framework itself, which is never deleted
        if prefers_buffer(cls):
            register_fast_import(cls, fast_import_buffer)
    return import_


cdef int _find_protocol(object x, bint with_adapter) except -1:
    """Return the protocol for the class of `x`, or for `x` alone. Imports no framework."""
    cls = type(x)
    if isinstance(x, type):
        return NOTHING
    if isinstance(x, Handle):
        return WRAPPER
    if torch_loaded() and issubclass(cls, <object>torch_c.tensor_type):
        return TORCH
    if numpy_loaded() and issubclass(cls, numpy_array_type):
        return NUMPY
    if PyCapsule_CheckExact(x):
        return CAPSULE
    if with_adapter and _importer(cls) is not None:
        return ADAPTER
    if hasattr(cls, "__dlpack_c_exchange_api__"):
        return TABLE
    if hasattr(cls, "__dlpack__"):
        return DLPACK
    if PyObject_CheckBuffer(x):
        return BUFFER
    if hasattr(cls, "__cuda_array_interface__") or hasattr(cls, "__array_interface__") \
            or hasattr(cls, "__array_struct__"):
        return INTERFACE
    # attributes of the object and not of its class
    if hasattr(x, "__dlpack__"):
        return DLPACK
    if hasattr(x, "__array_interface__") or hasattr(x, "__cuda_array_interface__"):
        return INTERFACE
    return NOTHING


cdef TensorImpl _alias_of(TensorImpl impl):
    """Return another TensorImpl over the same Storage, which must be allocated and POD."""
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
    # the buffers of NumPy's scalars of times and strings do not describe their type
    if numpy_loaded() and isinstance(x, numpy_generic_type) and x.dtype.kind not in "biufc":
        if copy is False:
            raise BufferError(
                f"A scalar of {x.dtype!r} has no memory to share. Allow a copy with copy=None.")
        import numpy
        return import_array(numpy.asarray(x), None)
    return import_buffer(x, copy)


def _interface(x, name):
    """Return the attribute `name` of `x`; None if it has none. Raises BufferError: it fails."""
    try:
        return getattr(x, name, None)
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.{name} does not describe the memory: {error}") from error


cdef TensorImpl _by_interface(object x, object copy):
    """Import the memory that ``__array_interface__`` or ``__cuda_array_interface__`` describes."""
    interface = _interface(x, "__cuda_array_interface__")
    if interface is not None:
        from bridge.exchange.cuda_interface_import import import_cuda_interface
        impl = import_cuda_interface(x, interface)
        return requested_copy(impl, "from_dlpack") if copy is True else impl
    import numpy
    if not numpy_loaded():
        raise ImportError("NumPy was imported but is not in sys.modules.")
    interface = _interface(x, "__array_interface__")
    if interface is not None:
        check_interface(x, interface)
    try:
        array = numpy.asarray(x)
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.__array_interface__ describes no array: {error}") from error
    return import_array(array, copy)
