# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""From any object that has a tensor's memory to TensorImpl, by the protocol of its class.

Note: Nested imports
--------------------
Importers and protocols are code of any library, and may call the bridge. A thread keeps the objects
whose code is running: none of them is imported once more, and there are MAX_NESTED at most. Where
so many were reached, each further import inside the outermost one is refused, too: code that
catches the error and tries again would double its time at each level.
"""

from cpython.object cimport PyObject, PyTypeObject

from bridge.c10.copy cimport requested_copy
from bridge.c10.device cimport as_device
from bridge.c10.handle cimport Handle
from bridge.c10.python_api cimport Py_TYPE
from bridge.c10.storage cimport EXTERNAL, READONLY, set_flags
from bridge.c10.tensor_impl cimport OWN_ORIGIN, TensorImpl, is_undefined, seen, storage_flags
from bridge.c10.views cimport alias
from bridge.dlpack.capsule cimport consume_capsule
from bridge.exchange.buffer_import cimport import_buffer
from bridge.exchange.device_memory cimport to_device
from bridge.exchange.dlpack_import cimport adopt_managed
from bridge.exchange.fresh_memory cimport as_copy, is_same, keeping, must_prove
from bridge.exchange.numpy cimport import_array, numpy_loaded, numpy_type
from bridge.exchange.dlpack_producers cimport (
    import_by_method,
    import_by_table,
    import_capsule_method,
)
from bridge.exchange.protocols cimport (
    ADAPTER,
    ARROW,
    BUFFER,
    CAPSULE,
    CAPSULES,
    CUDA,
    DLPACK,
    HEAP_TYPE,
    INTERFACE,
    NOTHING,
    NUMPY,
    READ_ONLY,
    TABLE,
    TORCH,
    UNKNOWN,
    WRAPPER,
    adapter_for,
    adapters,
    fast_import,
    fast_import_of,
    find_protocol,
    own_protocol,
    protocol_of,
)
from bridge.exchange.torch_api cimport torch_c, torch_type
from bridge.exchange.torch_import cimport import_any_torch, import_torch

from bridge.exchange.protocols import has_door
from bridge.exchange.registry import call_offers

cdef extern from *:
    """
    enum { MAX_NESTED = 32 };
    /* Of each thread: the objects whose code runs, the outermost first, which are borrowed from
       their callers, and whether there were too many. They take no memory that may be lacking. */
    static _Thread_local PyObject *bridge_running[MAX_NESTED];
    static _Thread_local Py_ssize_t bridge_n_running = 0;
    static _Thread_local int bridge_too_many = 0;
    """
    enum: MAX_NESTED
    PyObject** running "bridge_running"
    Py_ssize_t n_running "bridge_n_running"
    bint too_many "bridge_too_many"

cdef enum:
    MAX_CHAIN = 32


cdef object tristate(object copy):
    """Return `copy`. Raises TypeError: it is not True, False or None."""
    if copy is not None and copy is not True and copy is not False:
        raise TypeError(f"copy is True, False or None, not {copy!r}.")
    return copy


cpdef TensorImpl import_tensor(
    object x: TensorLike, object device: DeviceLike | None = None, object copy: bool | None = None
):
    """Return the TensorImpl of any object with a tensor's memory, shared if possible.

    `copy`: True always copies, False never (BufferError if necessary), None if necessary.
    `device`: copy there if the memory is elsewhere.

    Raises BufferError: the memory cannot be exchanged, with the reason. TypeError: `x` has no
    tensor's memory.
    """
    cdef TensorImpl impl, moved
    cdef PyTypeObject* cls = Py_TYPE(x)
    cdef fast_import fast
    if copy is None and device is None:
        if torch_type() != NULL and (cls == torch_type() or cls == torch_c.parameter_type):
            return import_torch(x, None)
        if cls == numpy_type():
            return import_array(x, None)
        fast = fast_import_of(cls)
        if fast != NULL:
            impl = fast(x)
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
    moved = to_device(impl, as_device(device), copy)
    if copy is True and moved is impl and not is_new(x, impl):
        return requested_copy(impl, "from_dlpack")
    return moved


cdef bint is_new(object x, TensorImpl impl) except -1:
    """Return whether importing `x` as `impl` copied it, so that nobody else has the memory."""
    return not isinstance(x, Handle) and not storage_flags(impl) & EXTERNAL


cdef TensorImpl _import(object x, object copy):
    """Return the TensorImpl of `x` on its device."""
    adapter = adapters.get(type(x))
    if adapter is not None:
        return _by_adapter(adapter, x, copy)
    return _by(protocol_of(x), x, copy)


cdef TensorImpl _by_adapter(object adapter, object x, object copy):
    cdef TensorImpl impl
    if adapter.import_takes_copy:
        impl = adapter.importer(x, copy)
    else:
        impl = _by_importer(adapter, x, copy)
    if impl is None:
        return _by(find_protocol(x, False), x, copy)       # left to the protocols of `x`
    if copy is True and not is_new(x, impl):
        return requested_copy(impl, "from_dlpack")
    return impl


cdef TensorImpl _by_importer(object adapter, object x, object copy):
    """Return the TensorImpl of what ``importer(x)`` returns, whose memory lives as long as `x`.

    None if it returns `x`. See bridge.exchange.fresh_memory.
    """
    cdef TensorImpl impl
    cdef list chain
    cdef Py_ssize_t running = n_running
    try:
        chain = _call_importers(adapter, x)
        if len(chain) == 1:
            return None
        found = chain.pop()
        impl = _import_last(found, None if copy is True else copy)
        if is_new(found, impl):
            return impl
        if must_prove(copy):
            _end_to(running)
            if not is_same(impl, _import_last(_call_importers(adapter, x).pop(), None)):
                return as_copy(impl, x, copy)
    finally:
        _end_to(running)
    for source in reversed(chain):
        impl = keeping(impl, source)
    return impl


cdef list _call_importers(object adapter, object x):
    """Return `x`, what its importer returns, what the importer of that returns, … (the last is not
    imported by an importer, or is left to its own protocols). All but the last are running.
    """
    cdef list chain = [x]
    while True:
        _begin(x)
        found = _call_importer(adapter, x)
        if found is x:
            if len(chain) > 1:
                _end()
            return chain
        chain.append(found)
        adapter = _importing_adapter(found)
        if adapter is None:
            return chain
        if len(chain) > MAX_CHAIN:
            from bridge.exchange.refusal import endless_importers
            raise BufferError(endless_importers(chain, [adapter_for(type(x)).name for x in chain]))
        x = found


cdef object _importing_adapter(object x):
    """Return the Adapter whose ``importer(x)`` is for `x`; None: another door is."""
    adapter = adapters.get(type(x))
    if adapter is None and protocol_of(x) == ADAPTER:
        adapter = adapter_for(type(x))
    return None if adapter is None or adapter.import_takes_copy else adapter


cdef TensorImpl _import_last(object found, object copy):
    """Return the TensorImpl of what the last importer returned; it may have returned its object."""
    if _importing_adapter(found) is None:
        return import_tensor(found, None, copy)
    return _by(find_protocol(found, False), found, copy)


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
        return _by_adapter(adapter_for(type(x)), x, copy)
    if protocol == BUFFER and not type(x).__flags__ & HEAP_TYPE:
        return import_buffer(x, copy)
    _begin(x)
    try:
        impl = _by_code_of(protocol, x, copy)
    finally:
        _end()
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
    if protocol == CAPSULES:
        return import_capsule_method(x, copy)
    # (NumPy may be marked as absent)
    import numpy  # no-cython-lint
    if not numpy_loaded():
        raise ImportError("NumPy was imported but is not in sys.modules.")
    from bridge.exchange import array_doors
    if protocol == CUDA:
        impl = array_doors.import_cuda_interface(x)
        if impl is None:
            protocol = find_protocol(x, False, CUDA)
            if protocol == NOTHING:
                return _by_object(x, copy, CUDA)
            return _by_code_of(protocol, x, copy)
    else:
        impl = (array_doors.import_array_interface(x, copy) if protocol == INTERFACE
                else array_doors.import_array_method(x, copy))
    if copy is True and not is_new(x, impl):
        return requested_copy(impl, "from_dlpack")
    return impl


cdef TensorImpl _by_object(object x, object copy, int after=UNKNOWN):
    """Import `x` by attributes of its own that its class lacks; None: it has none.

    `after`: behind this protocol.
    """
    cdef int protocol = own_protocol(x, after)
    return None if protocol == NOTHING else _by_code_of(protocol, x, copy)


cdef TensorImpl _by_offer(object x, object copy):
    """Import `x`, which has no door, by the adapter that a package offers.

    Raises TypeError: none does.
    """
    called, failures = call_offers()
    adapter = adapter_for(type(x)) if called else None
    if adapter is not None:
        return _by_adapter(adapter, x, copy)
    from bridge.exchange.refusal import no_memory
    _begin(x)
    try:
        raise TypeError(f"{no_memory(x, has_door)} {failures}".rstrip())
    finally:
        _end()


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


# Note: Nested imports.

cdef int _begin(object x) except -1:
    """Note that code of `x` is called, which the caller keeps until `end`.

    Raises BufferError: it is running already, or that of too many others is.
    """
    global n_running, too_many
    cdef Py_ssize_t i
    if n_running == 0:
        too_many = False
    for i in range(n_running):
        if running[i] == <PyObject*>x:
            raise BufferError(
                f"While this {type(x).__name__} is imported, its own code gives it to the bridge "
                "again. Give the bridge what has the memory; an importer may return its argument, "
                "to leave it to its own protocols.")
    if n_running >= MAX_NESTED or too_many:
        too_many = True
        raise BufferError(
            f"While a {type(<object>running[0]).__name__} is imported, its code gives the bridge "
            f"another object, whose code gives it another, {MAX_NESTED} times.")
    running[n_running] = <PyObject*>x
    n_running += 1
    return 0


cdef int _end() noexcept:
    """Forget the object that began last."""
    global n_running
    n_running -= 1
    return 0


cdef int _end_to(Py_ssize_t n) noexcept:
    """Forget all objects but the first `n`."""
    global n_running
    n_running = n
    return 0
