# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""From objects with Arrow's C interface to TensorImpl; no Arrow library is needed.

By the methods of Arrow's PyCapsule interface: ``__arrow_c_device_array__``, ``__arrow_c_array__``
or ``__arrow_c_stream__``, of whose chunks there may be one. Arrow's memory is immutable, so it is
imported read-only.
"""

from bridge.c10.copy cimport requested_copy
from bridge.c10.storage cimport EXTERNAL
from bridge.c10.tensor_impl cimport TensorImpl, storage_flags
from bridge.dlpack.abi cimport DL_CPU, DLDevice, has_streams
from bridge.exchange.arrow_layout cimport import_column, import_table
from bridge.exchange.arrow_structures cimport (
    ArrowDeviceArray,
    ArrowOwner,
    ArrowSchema,
    OwnedSchema,
    OwnedStream,
    is_struct,
    own_array,
    own_device_array,
    own_stream,
    read_columns,
    read_field,
    schema_of,
)
from bridge.exchange.buffer_import cimport fast_import_buffer
from bridge.exchange.fresh_memory cimport as_copy, is_same, must_prove

cdef tuple _METHODS = ("__arrow_c_device_array__", "__arrow_c_array__", "__arrow_c_stream__")

cdef enum:
    MAX_EMPTY = 1 << 16         # chunks without elements in front of one with elements


cdef str arrow_method(object x):
    """Return the name of the method by which `x` exports Arrow data; None if it has none."""
    for name in _METHODS:
        if getattr(x, name, None) is not None:
            return name
    return None


def is_reader(x: Any) -> bool:
    """Return whether `x` is a stream of tables that can be read once: reading it uses it up."""
    cls = type(x)
    return arrow_method(cls) == "__arrow_c_stream__" and (
        hasattr(cls, "__next__") or hasattr(cls, "read_all")) and not hasattr(cls, "columns")


def import_pyarrow(x: Any, copy: bool | None) -> TensorImpl | None:
    """Return the TensorImpl of an array, a table, a tensor or a buffer of pyarrow; None: others.

    Its arrays are nearly always in host memory, where ``__arrow_c_array__`` is the faster method.
    Its ``__dlpack__`` refuses booleans and lists of one size, and in old releases loses that a
    tensor is read-only.
    """
    try:
        exported = x.__arrow_c_array__()
    except Exception:
        # it lacks the method, is on a device, or raises again
        return fast_import_buffer(x) if arrow_method(type(x)) is None else import_arrow(x, copy)
    return _by_array(x, "__arrow_c_array__", exported, copy)


cpdef TensorImpl import_arrow(object x, object copy: bool | None = None):
    """Return the TensorImpl of an object with Arrow's C interface; shared, and read-only.

    Lists of one size and ``arrow.fixed_shape_tensor`` give dimensions. Copied: booleans, which
    Arrow packs into bits, and tables of more than one column, which become rows of a
    two-dimensional tensor of the type that NumPy gives them.

    Raises BufferError: nulls, another type than numbers, more than one chunk, broken structures,
    or ``copy=False`` and a copy is needed. TypeError: `x` has no such method.
    """
    cdef TensorImpl impl
    # most classes have the method, and some objects are slow to say what they lack
    name = arrow_method(type(x)) or arrow_method(x)
    if name is None:
        raise TypeError(f"{type(x).__name__} has none of {', '.join(_METHODS)}.")
    impl = _by_method(x, name, None if copy is True else copy)
    if storage_flags(impl) & EXTERNAL and must_prove(copy) and _is_fresh(x, name, impl):
        return as_copy(impl, x, copy)
    if copy is True and storage_flags(impl) & EXTERNAL:
        return requested_copy(impl, "from_dlpack")
    return impl


cdef TensorImpl _by_method(object x, str name, object copy):
    try:
        exported = getattr(x, name)()
    except BufferError:
        raise
    except Exception as error:
        from bridge.exchange.refusal import reason_of
        raise BufferError(
            f"{type(x).__name__}.{name} does not export the data: {reason_of(error)}") from error
    if name == "__arrow_c_stream__":
        return _by_stream(x, exported, copy)
    return _by_array(x, name, exported, copy)


cdef bint _is_fresh(object x, str name, TensorImpl impl) except -1:
    """Return whether `x` exports new memory at each call, as a query of DuckDB does.

    False for what can be read only once: nobody else has its memory.
    """
    if is_reader(x):
        return False
    try:
        return not is_same(impl, _by_method(x, name, None))
    except BufferError:
        return False


cdef TensorImpl _by_array(object x, str name, object exported, object copy):
    cdef ArrowDeviceArray device
    cdef DLDevice where
    cdef ArrowOwner owner
    cdef ArrowSchema* schema
    source = type(x)
    if type(exported) is not tuple or len(<tuple>exported) != 2:
        raise BufferError(
            f"{source.__name__}.{name} returned {type(exported).__name__}, not a pair of "
            "capsules.")
    schema_capsule, array_capsule = exported
    schema = schema_of(schema_capsule, source)
    where.device_type = DL_CPU
    where.device_id = 0
    if name == "__arrow_c_array__":
        owner = own_array(array_capsule, source)
    else:
        owner = own_device_array(array_capsule, source, &device)
        where.device_type = device.device_type
        # -1: the only one of its type, the CPU; what is no number of a device is refused later
        where.device_id = 0 if device.device_id == -1 and not has_streams(device.device_type) \
            else <int>device.device_id if 0 <= device.device_id <= 0x7FFF else -1
        if device.sync_event != NULL and has_streams(device.device_type):
            from bridge.exchange.streams import wait_for_event
            wait_for_event(where.device_id, (<size_t*>device.sync_event)[0])
    return _import(x, schema, owner, where, copy)


cdef TensorImpl _by_stream(object x, object exported, object copy):
    """Import the only chunk of a stream that has elements; no elements if there is none."""
    cdef OwnedStream stream = own_stream(exported, type(x))
    cdef OwnedSchema schema = stream.schema()
    cdef ArrowOwner owner, another
    cdef DLDevice where
    cdef int _i
    where.device_type = DL_CPU
    where.device_id = 0
    owner = ArrowOwner.__new__(ArrowOwner)
    owner.source = type(x)
    for _i in range(MAX_EMPTY):
        another = stream.chunk()
        if another is None:
            return _import(x, &schema.schema, owner, where, copy)
        if another.array.length == 0:
            continue
        if owner.array.release != NULL:
            break
        owner = another
    # what has no such call itself goes through pyarrow
    through = "" if hasattr(x, "combine_chunks") or hasattr(x, "rechunk") else \
        " (pyarrow.table(x).combine_chunks())" if hasattr(x, "columns") or is_reader(x) else \
        " (pyarrow.chunked_array(x).combine_chunks())"
    raise BufferError(
        f"{type(x).__name__} has more than one chunk, so it is not one block of memory. Join them "
        f"first: combine_chunks() in pyarrow{through}, rechunk() in polars.")


cdef TensorImpl _import(
    object x, const ArrowSchema* schema, ArrowOwner owner, DLDevice where, object copy,
):
    # a column of structures looks like a table, which has columns, or a reader of one a schema
    if is_struct(schema) and (hasattr(x, "columns") or is_reader(x)):
        return import_table(read_columns(schema, owner.source), owner, where, copy)
    return import_column(read_field(schema, owner.source), owner, where, copy)
