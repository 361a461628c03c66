# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Which protocol a class is imported by: found out once, and remembered for the class."""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.object cimport PyTypeObject
from cpython.pycapsule cimport PyCapsule_CheckExact
from libc.stdint cimport int64_t

from bridge.c10.handle cimport Handle
from bridge.c10.python_api cimport (
    pointer,
    publish,
    publish_pointer,
    published,
    published_pointer,
    set_pointer,
    set_word64,
    word64,
)
from bridge.exchange.buffer_import cimport fast_import_buffer
from bridge.exchange.numpy cimport numpy_array_type, numpy_loaded
from bridge.exchange.torch_api cimport is_read_only_class, torch_loaded, torch_type

import sys
import threading
from weakref import WeakKeyDictionary

from bridge.exchange.registry import adapter_of, on_change

cdef enum:
    MAX_FAST = 8

# class -> protocol; classes of Python are held weakly, so that they can be collected
cdef object _protocols = WeakKeyDictionary()
cdef dict _static_protocols = {}
# class -> Adapter; the classes of libraries live as long as the process
cdef dict adapters = {}
# the same for classes that may be deleted
cdef object _other_adapters = WeakKeyDictionary()
# How often libraries were registered: what was found before the last time is not remembered.
cdef int64_t _generation = 0
cdef object _remembering = threading.RLock()
# Classes of libraries with a C function, which returns None for what needs a closer look.
cdef (PyTypeObject*)[MAX_FAST] _fast_types
cdef fast_import[MAX_FAST] _fast_imports
cdef int _n_fast = 0


cdef int protocol_of(object x) except -1:
    """Return the protocol for the class of `x`, found or remembered."""
    cdef object cls = type(x)
    cdef int64_t generation
    cdef int protocol = _static_protocols.get(cls, UNKNOWN)
    if protocol == UNKNOWN:
        protocol = _protocols.get(cls, UNKNOWN)
    if protocol == UNKNOWN:
        generation = word64(&_generation)
        protocol = find_protocol(x, True)
        with _remembering:
            if generation != _generation:
                pass            # a library was registered meanwhile, maybe for this class
            elif not cls.__flags__ & HEAP_TYPE:
                _static_protocols[cls] = protocol
            elif not isinstance(x, type):
                _protocols[cls] = protocol
    return protocol


cdef int find_protocol(object x, bint with_adapter, int after=UNKNOWN) except -1:
    """Return the protocol for the class of `x`; `after`: one behind it. Imports no framework."""
    cls = type(x)
    if isinstance(x, type):
        return NOTHING
    if isinstance(x, Handle):
        return WRAPPER
    if torch_loaded() and issubclass(cls, <object>torch_type()):
        return READ_ONLY if is_read_only_class(cls) else TORCH
    if numpy_loaded() and issubclass(cls, numpy_array_type):
        return NUMPY
    if PyCapsule_CheckExact(x):
        return CAPSULE
    if with_adapter and adapter_for(cls) is not None:
        return ADAPTER
    for name, protocol in _DOORS:
        if protocol > BUFFER > after and PyObject_CheckBuffer(x):
            return BUFFER
        if protocol > after and hasattr(cls, name):
            return protocol
    return NOTHING


cdef bint _has_own(object x, str name) except -1:
    """Return whether `x` has an attribute that its class lacks."""
    if name == "__dlpack_c_exchange_api__":     # of classes only
        return False
    if name == "to_dlpack":     # some make an attribute of every name, except of Python's own
        return name in getattr(x, "__dict__", ())
    try:
        return hasattr(x, name) and not hasattr(x, "__no_such_attribute__")
    except Exception:           # of a __getattr__ of any library: it is not there
        return False


cdef int own_protocol(object x, int after) except -1:
    """Return the protocol of an attribute of `x` that its class lacks, behind `after`; NOTHING."""
    if not isinstance(x, type):
        for name, protocol in _DOORS:
            if protocol > after and _has_own(x, name):
                return protocol
    return NOTHING


# The attributes of doors, in their order.
cdef tuple _DOORS = (
    ("__dlpack_c_exchange_api__", TABLE),
    ("__dlpack__", DLPACK),
    ("__cuda_array_interface__", CUDA),
    ("__array_interface__", INTERFACE),
    ("__array_struct__", INTERFACE),
    ("__arrow_c_device_array__", ARROW),
    ("__arrow_c_array__", ARROW),
    ("__arrow_c_stream__", ARROW),
    ("to_dlpack", CAPSULES),
    ("__array__", ARRAY),
)


cpdef bint has_door(object x: object) except -1:
    """Return whether `x` has a door to its memory, by its class."""
    return find_protocol(x, True) != NOTHING


def class_has_door(x: object) -> bool | None:
    """Return whether the class of `x` has a door to a tensor's memory; None: it depends on `x`.

    None for classes of a library whose adapter looks at each object of its package.
    """
    cdef int protocol
    if isinstance(x, type):
        return False
    protocol = find_protocol(x, True)
    if protocol != ADAPTER:
        return protocol != NOTHING
    if adapter_for(type(x)).includes(x) or find_protocol(x, False) != NOTHING:
        return True
    return None


def object_has_door(x: object) -> bool:
    """Return whether `x` has a door where `class_has_door` is not True. It may still be refused."""
    if isinstance(x, type):
        return False
    adapter = adapter_for(type(x))
    if adapter is not None and _takes(adapter, x):
        return True
    return own_protocol(x, UNKNOWN) != NOTHING


cdef bint _takes(object adapter, object x) except -1:
    """Return whether an importer takes `x`, or refuses it as one of its library's tensors."""
    try:
        found = adapter.importer(x, None) if adapter.import_takes_copy else adapter.importer(x)
    except TypeError:
        return False
    except Exception:
        return True
    return found is not None and found is not x


cdef object adapter_for(object cls):
    """Return the Adapter for a class of a library; None if there is none."""
    cdef int64_t generation
    adapter = adapters.get(cls)
    if adapter is None:
        adapter = _other_adapters.get(cls)
    if adapter is not None:
        return adapter
    generation = word64(&_generation)
    adapter = adapter_of(cls)
    if adapter is None:
        return None
    lasting = _is_lasting(cls)
    fast = lasting and adapter.prefers_buffer and adapter_of(cls, own=True) is adapter
    with _remembering:
        if generation != _generation:
            return adapter
        (adapters if lasting else _other_adapters)[cls] = adapter
        if fast:
            register_fast_import(cls, fast_import_buffer)
    return adapter


cdef bint _is_lasting(object cls) except -1:
    """Return whether `cls` is an attribute of its module, and so as good as never deleted."""
    module = sys.modules.get(cls.__module__)
    return module is not None and getattr(module, cls.__name__, None) is cls


cdef fast_import fast_import_of(PyTypeObject* cls) noexcept nogil:
    """Return the C function that imports objects of exactly `cls`; NULL if there is none."""
    cdef int i
    for i in range(published(&_n_fast)):
        if published_pointer(<void**>&_fast_types[i]) == cls:
            return <fast_import>pointer(<void**>&_fast_imports[i])
    return NULL


cdef int register_fast_import(object cls, fast_import function) except -1:
    """Import objects of exactly `cls`, a class that is never deleted, by `function` from now on."""
    global _n_fast
    cdef int i
    with _remembering:
        for i in range(len(_fast_classes)):
            if _fast_classes[i] is cls:
                set_pointer(<void**>&_fast_imports[i], <void*>function)
                publish_pointer(<void**>&_fast_types[i], <void*>cls)
                return 0
        if _n_fast < MAX_FAST:
            _fast_classes.append(cls)
            set_pointer(<void**>&_fast_imports[_n_fast], <void*>function)
            publish_pointer(<void**>&_fast_types[_n_fast], <void*>cls)
            publish(&_n_fast, _n_fast + 1)
    return 0


# The class of each place in the table, which it keeps for good: other threads read the table
# without a lock. NULL in `_fast_types` for one that is not in force.
cdef list _fast_classes = []


def _forget():
    """Forget which protocol classes are imported by: a library was registered."""
    global _generation
    cdef int i
    with _remembering:
        set_word64(&_generation, _generation + 1)
        adapters.clear()
        _other_adapters.clear()
        _protocols.clear()
        _static_protocols.clear()
    for i in range(published(&_n_fast)):
        adapter = adapter_of(_fast_classes[i])
        # else the library's module is in force
        if adapter is None or not adapter.import_takes_copy:
            publish_pointer(<void**>&_fast_types[i], NULL)


on_change(_forget)
