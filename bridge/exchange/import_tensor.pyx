# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""From any object that has a tensor's memory to TensorImpl: one ordered list of protocols.

Which protocol a class is imported by is found out once and remembered for the class.
"""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.object cimport PyTypeObject
from cpython.pycapsule cimport PyCapsule_CheckExact
from libc.stdint cimport int64_t

from bridge.c10.copy cimport requested_copy
from bridge.c10.device cimport as_device
from bridge.c10.handle cimport Handle
from bridge.c10.python_api cimport (
    Py_TYPE,
    pointer,
    publish,
    publish_pointer,
    published,
    published_pointer,
    set_pointer,
    set_word64,
    word64,
)
from bridge.c10.storage cimport EXTERNAL, READONLY, set_flags
from bridge.c10.tensor_impl cimport OWN_ORIGIN, TensorImpl, is_undefined, seen, storage_flags
from bridge.c10.views cimport alias
from bridge.dlpack.capsule cimport consume_capsule
from bridge.exchange.buffer_import cimport fast_import_buffer, import_buffer
from bridge.exchange.dlpack_import cimport adopt_managed
from bridge.exchange.fresh_memory cimport as_copy, is_same, keeping, must_prove
from bridge.exchange.nested_imports cimport begin, depth, end, end_to
from bridge.exchange.numpy cimport (
    import_array,
    numpy_loaded,
    numpy_array_type,
    numpy_type,
)
from bridge.exchange.dlpack_producers cimport (
    import_by_method,
    import_by_table,
    import_capsule_method,
)
from bridge.exchange.torch_api cimport (
    is_read_only_class,
    torch_c,
    torch_loaded,
    torch_type,
)
from bridge.exchange.torch_import cimport import_any_torch, import_torch

import sys
import threading
from weakref import WeakKeyDictionary

from bridge.exchange.registry import adapter_of, on_change
from bridge.exchange.to_device import to_device

# The protocols, in the order in which they are tried.
cdef enum:
    UNKNOWN = 0
    WRAPPER = 1         # one of the bridge's own tensor classes
    TORCH = 2           # torch.Tensor or a subclass
    NUMPY = 3           # numpy.ndarray or a subclass
    CAPSULE = 4         # a DLPack capsule
    ADAPTER = 5         # a registered class; see bridge.exchange.registry
    TABLE = 6           # has __dlpack_c_exchange_api__
    DLPACK = 7          # has __dlpack__
    CUDA = 8            # has __cuda_array_interface__
    BUFFER = 9          # exports a buffer
    INTERFACE = 10      # has __array_interface__ or __array_struct__
    ARROW = 11          # has one of the methods of Arrow's PyCapsule interface
    CAPSULES = 12       # has to_dlpack()
    ARRAY = 13          # has __array__
    NOTHING = 14
    READ_ONLY = 15      # torch tensors of read-only memory; see is_read_only_class
    HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
    MAX_FAST = 8
    MAX_CHAIN = 32

# class -> protocol; classes of Python are held weakly, so that they can be collected
cdef object _protocols = WeakKeyDictionary()
cdef dict _static_protocols = {}
# class -> Adapter; the classes of libraries live as long as the process
cdef dict _adapters = {}
# the same for classes that may be deleted
cdef object _other_adapters = WeakKeyDictionary()
# How often libraries were registered: what was found before the last time is not remembered.
cdef int64_t _generation = 0
cdef object _remembering = threading.RLock()
# Classes of libraries with a C function, which returns None for what needs a closer look.
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
        if torch_type() != NULL and (cls == torch_type() or cls == torch_c.parameter_type):
            return import_torch(x, None)
        if cls == numpy_type():
            return import_array(x, None)
        for i in range(published(&_n_fast)):
            if published_pointer(<void**>&_fast_types[i]) == cls:
                impl = (<fast_import>pointer(<void**>&_fast_imports[i]))(x)
                if impl is not None:
                    return impl
    elif copy is False and device is None and cls == torch_type():
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
    return not isinstance(x, Handle) and not storage_flags(impl) & EXTERNAL


cdef TensorImpl _import(object x, object copy):
    """Return the TensorImpl of `x` on its device."""
    adapter = _adapters.get(type(x))
    return _import_by_protocol(x, copy) if adapter is None else _by_adapter(adapter, x, copy)


cdef TensorImpl _by_adapter(object adapter, object x, object copy):
    cdef TensorImpl impl
    if adapter.import_takes_copy:
        impl = adapter.importer(x, copy)
    else:
        impl = _by_importer(adapter, x, copy)
    if impl is None:
        return _by(_find_protocol(x, False), x, copy)       # left to the protocols of `x`
    if copy is True and not is_new(x, impl):
        return requested_copy(impl, "from_dlpack")
    return impl


cdef TensorImpl _by_importer(object adapter, object x, object copy):
    """Return the TensorImpl of what ``importer(x)`` returns, whose memory lives as long as `x`.

    None if it returns `x`. See bridge.exchange.fresh_memory.
    """
    cdef TensorImpl impl
    cdef list chain
    cdef Py_ssize_t running = depth()
    try:
        chain = _call_importers(adapter, x)
        if len(chain) == 1:
            return None
        found = chain.pop()
        impl = _import_last(found, None if copy is True else copy)
        if is_new(found, impl):
            return impl
        if must_prove(copy):
            end_to(running)
            if not is_same(impl, _import_last(_call_importers(adapter, x).pop(), None)):
                return as_copy(impl, x, copy)
    finally:
        end_to(running)
    for source in reversed(chain):
        impl = keeping(impl, source)
    return impl


cdef list _call_importers(object adapter, object x):
    """Return `x`, what its importer returns, what the importer of that returns, … (the last is not
    imported by an importer, or is left to its own protocols). All but the last are running.
    """
    cdef list chain = [x]
    while True:
        begin(x)
        found = _call_importer(adapter, x)
        if found is x:
            if len(chain) > 1:
                end()
            return chain
        chain.append(found)
        adapter = _importing_adapter(found)
        if adapter is None:
            return chain
        if len(chain) > MAX_CHAIN:
            from bridge.exchange.refusal import endless_importers
            raise BufferError(endless_importers(chain, [_adapter(type(x)).name for x in chain]))
        x = found


cdef object _importing_adapter(object x):
    """Return the Adapter whose ``importer(x)`` is for `x`; None: another door is."""
    adapter = _adapters.get(type(x))
    if adapter is None and _protocol_of(x) == ADAPTER:
        adapter = _adapter(type(x))
    return None if adapter is None or adapter.import_takes_copy else adapter


cdef TensorImpl _import_last(object found, object copy):
    """Return the TensorImpl of what the last importer returned; it may have returned its object."""
    if _importing_adapter(found) is None:
        return import_tensor(found, None, copy)
    return _by(_find_protocol(found, False), found, copy)


cdef object _call_importer(object adapter, object x):
    try:
        return adapter.importer(x)
    except (BufferError, TypeError, ImportError, MemoryError):
        raise
    except Exception as error:
        from bridge.exchange.refusal import reason_of
        raise BufferError(
            f"The importer of {adapter.name} does not take this {type(x).__name__}: "
            f"{type(error).__name__}: {reason_of(error)}") from error


cdef TensorImpl _import_by_protocol(object x, object copy):
    return _by(_protocol_of(x), x, copy)


cdef int _protocol_of(object x) except -1:
    """Return the protocol for the class of `x`, found or remembered."""
    cdef object cls = type(x)
    cdef int64_t generation
    cdef int protocol = _static_protocols.get(cls, UNKNOWN)
    if protocol == UNKNOWN:
        protocol = _protocols.get(cls, UNKNOWN)
    if protocol == UNKNOWN:
        generation = word64(&_generation)
        protocol = _find_protocol(x, True)
        with _remembering:
            if generation != _generation:
                pass            # a library was registered meanwhile, maybe for this class
            elif not cls.__flags__ & HEAP_TYPE:
                _static_protocols[cls] = protocol
            elif not isinstance(x, type):
                _protocols[cls] = protocol
    return protocol


cdef TensorImpl _by(int protocol, object x, object copy):
    cdef TensorImpl impl
    if protocol == TORCH:
        return import_any_torch(x, copy)
    if protocol == NUMPY:
        return import_array(x, copy)
    if protocol == WRAPPER:
        impl = _alias_of((<Handle>x).impl)
        return requested_copy(impl, "from_dlpack") if copy is True else impl
    if protocol == TABLE:
        return import_by_table(x, copy)
    if protocol == CAPSULE:
        return adopt_managed(consume_capsule(x), 0, copy)
    if protocol == ADAPTER:
        return _by_adapter(_adapter(type(x)), x, copy)
    if protocol == BUFFER and not type(x).__flags__ & HEAP_TYPE:
        return import_buffer(x, copy)
    begin(x)
    try:
        impl = _by_code_of(protocol, x, copy)
    finally:
        end()
    return _by_offer(x, copy) if impl is None else impl


cdef TensorImpl _by_code_of(int protocol, object x, object copy):
    """Import `x` by a protocol that may be Python code; None: it has none after all."""
    if protocol == DLPACK:
        return import_by_method(x, copy)
    if protocol == BUFFER:
        return import_buffer(x, copy)
    if protocol == ARROW:
        from bridge.exchange.arrow_import import import_arrow

        return <TensorImpl>import_arrow(x, copy)
    if protocol == NOTHING:
        return _by_object(x, copy)
    if protocol == READ_ONLY:
        return _by_plain(x, copy)
    return _by_slow_door(protocol, x, copy)


cdef TensorImpl _by_plain(object x, object copy):
    """Return a TensorImpl of the memory of a read-only torch tensor."""
    cdef TensorImpl impl
    from bridge.exchange.torch_state import plain_of_read_only
    impl = import_any_torch(plain_of_read_only(x), copy)
    if copy is not True:
        set_flags(impl.storage, impl.storage.flags | READONLY)
        impl.origin = x
    return impl


cdef TensorImpl _by_slow_door(int protocol, object x, object copy):
    cdef TensorImpl impl
    if protocol == CUDA:
        from bridge.exchange.cuda_interface_import import import_cuda_interface
        from bridge.exchange.array_interface import interface_of

        interface = interface_of(x, "__cuda_array_interface__")
        if interface is None:
            protocol = _find_protocol(x, False, CUDA)
            if protocol == NOTHING:
                return _by_object(x, copy, CUDA)
            return _by_code_of(protocol, x, copy)
        impl = import_cuda_interface(x, interface)
    elif protocol == CAPSULES:
        return import_capsule_method(x, copy)
    else:
        # (NumPy may be marked as absent)
        import numpy  # no-cython-lint
        if not numpy_loaded():
            raise ImportError("NumPy was imported but is not in sys.modules.")
        from bridge.exchange import array_doors
        impl = (array_doors.import_array_interface(x, copy) if protocol == INTERFACE
                else array_doors.import_array_method(x, copy))
    if copy is True and not is_new(x, impl):
        return requested_copy(impl, "from_dlpack")
    return impl


cdef TensorImpl _by_object(object x, object copy, int after=UNKNOWN):
    """Import `x` by attributes of its own that its class lacks; None: it has none.

    `after`: behind this protocol.
    """
    if not isinstance(x, type):
        for name, door in _DOORS:
            if door > after and _has_own(x, name):
                return _by_code_of(door, x, copy)
    return None


cdef TensorImpl _by_offer(object x, object copy):
    """Import `x`, which has no door, by the adapter that a package offers.

    Raises TypeError: none does.
    """
    from bridge.exchange.entry_points import call_all

    called, failures = call_all()
    adapter = _adapter(type(x)) if called else None
    if adapter is not None:
        return _by_adapter(adapter, x, copy)
    from bridge.exchange.refusal import no_memory
    begin(x)
    try:
        raise TypeError(f"{no_memory(x, has_door)} {failures}".rstrip())
    finally:
        end()


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


cpdef bint has_door(object x) except -1:
    """Return whether `x` has a door to its memory, by its class."""
    return _find_protocol(x, True) != NOTHING


def class_has_door(x: object) -> bool | None:
    """Return whether the class of `x` has a door to a tensor's memory; None: it depends on `x`.

    None for classes of a library whose adapter looks at each object of its package.
    """
    cdef int protocol
    if isinstance(x, type):
        return False
    protocol = _find_protocol(x, True)
    if protocol != ADAPTER:
        return protocol != NOTHING
    if _adapter(type(x)).includes(x) or _find_protocol(x, False) != NOTHING:
        return True
    return None


def object_has_door(x: object) -> bool:
    """Return whether `x` has a door where `class_has_door` is not True. It may still be refused."""
    if isinstance(x, type):
        return False
    adapter = _adapter(type(x))
    if adapter is not None and _takes(adapter, x):
        return True
    for name, _ in _DOORS:
        if _has_own(x, name):
            return True
    return False


cdef bint _takes(object adapter, object x) except -1:
    """Return whether an importer takes `x`, or refuses it as one of its library's tensors."""
    try:
        found = adapter.importer(x, None) if adapter.import_takes_copy else adapter.importer(x)
    except TypeError:
        return False
    except Exception:
        return True
    return found is not None and found is not x


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
        _adapters.clear()
        _other_adapters.clear()
        _protocols.clear()
        _static_protocols.clear()
    for i in range(published(&_n_fast)):
        adapter = adapter_of(_fast_classes[i])
        # else the library's module is in force
        if adapter is None or not adapter.import_takes_copy:
            publish_pointer(<void**>&_fast_types[i], NULL)


on_change(_forget)


cdef object _adapter(object cls):
    """Return the Adapter for a class of a library; None if there is none."""
    cdef int64_t generation
    adapter = _adapters.get(cls)
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
        (_adapters if lasting else _other_adapters)[cls] = adapter
        if fast:
            register_fast_import(cls, fast_import_buffer)
    return adapter


cdef bint _is_lasting(object cls) except -1:
    """Return whether `cls` is an attribute of its module, and so as good as never deleted."""
    module = sys.modules.get(cls.__module__)
    return module is not None and getattr(module, cls.__name__, None) is cls


cdef int _find_protocol(object x, bint with_adapter, int after=UNKNOWN) except -1:
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
    if with_adapter and _adapter(cls) is not None:
        return ADAPTER
    for name, protocol in _DOORS:
        if protocol > BUFFER > after and PyObject_CheckBuffer(x):
            return BUFFER
        if protocol > after and hasattr(cls, name):
            return protocol
    return NOTHING


cdef TensorImpl _alias_of(TensorImpl impl):
    """Return another TensorImpl over the same Storage, which must be allocated and POD."""
    cdef TensorImpl out
    impl = seen(impl)
    if is_undefined(impl):
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

# pyi: def import_tensor(
# pyi:     x: TensorLike, device: DeviceLike | None = None, copy: bool | None = None
# pyi: ) -> TensorImpl: ...
# pyi: def has_door(x: object) -> bool: ...
