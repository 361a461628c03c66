# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Anything that has a tensor's memory to a TensorImpl: one ladder of producers.

A type is looked at once. What was found, which of the ways below it offers, is
remembered for the type.
"""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetPointer, PyCapsule_IsValid

from bridge.c10.copy cimport asked_copy
from bridge.c10.device cimport as_device
from bridge.c10.observe cimport copying
from bridge.c10.storage cimport EXTERNAL, READONLY
from bridge.c10.tensor_impl cimport LENT, TensorImpl
from bridge.c10.views cimport alias
from bridge.dlpack.abi cimport (
    DL_CUDA,
    DL_ROCM,
    DLPACK_MAJOR,
    DLPACK_MINOR,
    DLManagedTensorVersioned,
    DLPackExchangeAPI,
)
from bridge.dlpack.capsule cimport ManagedTensor, call_deleter, own_versioned, take
from bridge.exchange.buffers cimport buffer_in, held_buffer
from bridge.exchange.incoming cimport adopt_managed
from bridge.exchange.numpy cimport (
    array_in,
    meet_numpy,
    numpy_array_type,
    numpy_generic_type,
)
from bridge.exchange.torch cimport (
    any_tensor_in,
    meet_torch,
    tensor_in,
    torch_parameter_type,
    torch_tensor_type,
)

from weakref import WeakKeyDictionary

from bridge.c10.observe import PRODUCER as _PRODUCER
from bridge.exchange.adapters import bringer, buffered
from bridge.exchange.array_interface import check_interface
from bridge.exchange.transfer import to_device

cdef extern from "Python.h":
    PyTypeObject* Py_TYPE(object)
    PyObject* PyErr_Occurred()

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
MAX_VERSION = (DLPACK_MAJOR, DLPACK_MINOR)


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
    cdef TensorImpl impl
    cdef PyTypeObject* cls = Py_TYPE(x)
    cdef int i
    if copy is None and device is None:
        if cls == torch_tensor_type or cls == torch_parameter_type and cls != NULL:
            return tensor_in(x)
        if <PyObject*>cls == <PyObject*>numpy_array_type:
            return array_in(x, None)
        for i in range(_n_quick):
            if _quick_types[i] == cls:
                impl = _quick_functions[i](x)
                if impl is not None:
                    return impl
    elif copy is not None:
        tristate(copy)
    bring = _bringers.get(<object>cls)
    impl = _by_way(x, copy) if bring is None else _adapted(bring, x, copy)
    if device is not None:
        return to_device(impl, as_device(device), copy)
    return impl


cdef TensorImpl _adapted(object bring, object x, object copy):
    cdef TensorImpl impl = bring(x, copy)
    if impl is None:
        return _by_way(x, copy, False)      # the adapter leaves it to the others
    if copy is True and impl.storage.flags & EXTERNAL:
        return asked_copy(impl, "from_dlpack")
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
        impl = _by_table(x, copy)
    elif way == DLPACK:
        impl = _by_dlpack(x, copy)
    elif way == CAPSULE:
        impl = adopt_managed(take(x), 0, copy)
        return impl
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
        return asked_copy(impl, "from_dlpack")
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
    if not impl.flags & LENT:
        out.origin = impl.origin
    return out


cdef int _raise_pending() except -1:
    return -1


cdef TensorImpl _by_table(object x, object copy):
    cdef DLPackExchangeAPI* api
    cdef DLManagedTensorVersioned* managed = NULL
    capsule = type(x).__dlpack_c_exchange_api__
    if not PyCapsule_IsValid(capsule, "dlpack_exchange_api"):
        raise BufferError(
            f"{type(x).__name__}.__dlpack_c_exchange_api__ is no capsule of the name "
            "'dlpack_exchange_api'.")
    api = <DLPackExchangeAPI*>PyCapsule_GetPointer(capsule, "dlpack_exchange_api")
    while api.header.version.major != DLPACK_MAJOR:
        if api.header.version.major < DLPACK_MAJOR or api.header.prev_api == NULL:
            if hasattr(x, "__dlpack__"):
                return _by_dlpack(x, copy)
            raise BufferError(
                f"The DLPack exchange table of {type(x).__name__} is of major version "
                f"{api.header.version.major}; {DLPACK_MAJOR} is understood.")
        api = <DLPackExchangeAPI*>api.header.prev_api
    if api.managed_tensor_from_py_object_no_sync == NULL:
        raise BufferError(
            f"The DLPack exchange table of {type(x).__name__} is broken: a function that must "
            "be there is NULL.")
    if api.managed_tensor_from_py_object_no_sync(<void*>x, &managed) != 0:
        if PyErr_Occurred() == NULL:
            raise BufferError(
                f"The DLPack exchange table of {type(x).__name__} failed without saying why.")
        _translate(x)
    if PyErr_Occurred() != NULL:
        try:
            _translate(x)
        finally:
            call_deleter(managed, True)     # of what it says it gave, nevertheless
    return adopt_managed(own_versioned(managed), 0, copy)


cdef int _translate(object x) except -1:
    """Raise the pending exception of a producer as a BufferError."""
    try:
        _raise_pending()
    except BufferError:
        raise
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__} does not give its memory: {error}") from error


def by_dlpack(x, *, readonly=False, on_host=False):
    """The TensorImpl of what ``x.__dlpack__`` gives, for adapters.

    `readonly`: immutable by nature, whatever its DLPack tensor says. `on_host`: known to
    be in host memory, so that nothing is to be asked about devices.
    """
    return _by_dlpack(x, None, READONLY if readonly else 0, on_host)


cdef TensorImpl _by_dlpack(object x, object copy, int flags=0, bint on_host=False):
    cdef ManagedTensor managed
    cdef TensorImpl impl
    where = None if on_host else _device_of(x)
    arguments = {}
    if not on_host and where[0] in (DL_CUDA, DL_ROCM):
        try:
            arguments["stream"] = _current_stream(where)
        except Exception as error:
            raise BufferError(
                f"{type(x).__name__} says that it is on CUDA device {where[1]}, which torch "
                f"does not know: {error}") from error
    try:
        capsule = _call_dlpack(x, arguments)
    except (BufferError, TypeError):
        raise
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.__dlpack__ does not give its memory: "
            f"{type(error).__name__}: {error}") from error
    if not PyCapsule_CheckExact(capsule):
        raise BufferError(
            f"{type(x).__name__}.__dlpack__ gave {type(capsule).__name__} and not a capsule.")
    try:
        managed = take(capsule)
    except BaseException:
        # Let the capsule go here and not while the error is on its way: the producer's
        # destructor may run Python.
        capsule = None
        raise
    capsule = None
    if not on_host and where != (
            managed.tensor().device.device_type, managed.tensor().device.device_id):
        seen = (managed.tensor().device.device_type, managed.tensor().device.device_id)
        managed = None
        raise BufferError(
            f"{type(x).__name__}.__dlpack_device__ says {where}, but the capsule is on {seen}.")
    impl = adopt_managed(managed, flags, copy)
    if managed.copied():
        copying(impl.c_numel * impl.c_dtype.itemsize, _PRODUCER)
    return impl


def _call_dlpack(x, arguments):
    """``x.__dlpack__``, versioned if it can, with what is left of the arguments if not."""
    attempts = [{"max_version": MAX_VERSION, **arguments}, {}]
    if arguments:
        attempts.insert(1, arguments)
    first = None
    for given in attempts:
        try:
            return x.__dlpack__(**given)
        except TypeError as error:
            first = first if first is not None else error
            # An old signature, or a TypeError of its own? A subclass is that, and asking once
            # more in the old way would be deprecated by some.
            if type(error) is not TypeError or "argument" not in str(error):
                break
    raise BufferError(
        f"{type(x).__name__}.__dlpack__ does not give its memory: {first}") from first


def _device_of(x):
    try:
        where = x.__dlpack_device__()
    except AttributeError:
        raise BufferError(
            f"{type(x).__name__} has __dlpack__ and no __dlpack_device__, so it is no DLPack "
            "producer.") from None
    except BufferError:
        raise
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.__dlpack_device__ does not say where the memory is: "
            f"{error}") from error
    try:
        kind, index = where
        return int(kind), int(index)
    except (TypeError, ValueError):
        raise BufferError(
            f"{type(x).__name__}.__dlpack_device__ gave {where!r} and not (device type, index)."
        ) from None


def _current_stream(where):
    """The stream we work on, as the array API standard passes it: torch's current one."""
    if not meet_torch():
        return 1                # the legacy default stream
    import torch
    if not torch.cuda.is_available():
        return 1
    stream = torch.cuda.current_stream(where[1]).cuda_stream
    return 1 if stream == 0 else stream


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
    if _interface(x, "__cuda_array_interface__") is not None:
        from bridge.exchange.cuda_interface import described
        impl = ingest(described(x), None, copy)
        return impl
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
