# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""From TensorImpl to the structures of Arrow's C interface; nothing but booleans is copied.

One dimension is an array of numbers; more are an ``arrow.fixed_shape_tensor``: lists of one size,
whose child has the numbers. The structure with the numbers refers to the owner of the memory
(`Storage.ctx`), so an exported array stays valid whatever becomes of the tensor. A consumer may
move a child out of its parent, so each structure has a block of its own.
"""

from cpython.pycapsule cimport PyCapsule_Destructor, PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from bridge.c10.device cimport host_accessible
from bridge.c10.layout cimport checked_numel
from bridge.c10.reports cimport report_copy
from bridge.c10.retained cimport retained_owner
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    allocated,
    device_index_of,
    device_type_of,
    seen,
)
from bridge.c10.type_meta cimport uint8_type
from bridge.dlpack.abi cimport DL_CPU, has_streams
from bridge.exchange.arrow_structures cimport (
    ARROW_NULLABLE,
    MAX_LIST,
    ArrowArray,
    ArrowDeviceArray,
    ArrowSchema,
    Field,
    read_field,
    schema_of,
)
from bridge.exchange.dlpack_export cimport drop_owner, refuse_non_pod
from bridge.exchange.numpy cimport export_array, import_array

from bridge.c10.errors import EnforceBufferError

cdef dict _FORMATS = {
    "int8": b"c", "int16": b"s", "int32": b"i", "int64": b"l", "uint8": b"C", "uint16": b"S",
    "uint32": b"I", "uint64": b"L", "float16": b"e", "float32": b"f", "float64": b"g", "bool": b"b",
}


# The blocks behind structures. Each begins with what its structure points to.

cdef struct SchemaBlock:
    ArrowSchema child
    ArrowSchema* children
    char[32] format
    # metadata, whose length depends on the number of dimensions, follows

cdef struct ArrayBlock:
    ArrowArray child
    ArrowArray* children
    (void*)[2] buffers
    void* ctx                   # the owner of the memory; NULL: has none


cdef void _release_schema(ArrowSchema* schema) noexcept nogil:
    cdef SchemaBlock* block = <SchemaBlock*>schema.private_data
    if schema.n_children and block.child.release != NULL:
        _release_schema(&block.child)
    schema.release = NULL
    free(block)


cdef void _release_array(ArrowArray* array) noexcept nogil:
    cdef ArrayBlock* block = <ArrayBlock*>array.private_data
    cdef void* ctx = block.ctx
    if array.n_children and block.child.release != NULL:
        _release_array(&block.child)
    array.release = NULL
    free(block)
    if ctx != NULL:
        drop_owner(ctx)


cdef int _fill_schema(ArrowSchema* schema, bytes text, bytes metadata) except -1:
    """Fill a schema; `metadata` is empty or in Arrow's encoding."""
    cdef SchemaBlock* block = <SchemaBlock*>calloc(1, sizeof(SchemaBlock) + len(metadata))
    cdef char* after
    if block == NULL:
        raise MemoryError()
    after = <char*>block + sizeof(SchemaBlock)
    memcpy(block.format, <const char*>text, len(text))
    memcpy(after, <const char*>metadata, len(metadata))
    schema.format = block.format
    schema.name = b""
    schema.metadata = after if metadata else NULL
    schema.flags = ARROW_NULLABLE
    schema.n_children = 0
    schema.children = NULL
    schema.dictionary = NULL
    schema.private_data = block
    schema.release = _release_schema
    return 0


cdef int _fill_array(ArrowArray* array, int64_t length, int n_buffers) except -1:
    cdef ArrayBlock* block = <ArrayBlock*>calloc(1, sizeof(ArrayBlock))
    if block == NULL:
        raise MemoryError()
    array.length = length
    array.null_count = 0
    array.offset = 0
    array.n_buffers = n_buffers
    array.buffers = <const void**>block.buffers
    array.n_children = 0
    array.children = NULL
    array.dictionary = NULL
    array.private_data = block
    array.release = _release_array
    return 0


cdef bytes _extension(TensorImpl impl):
    """Return the metadata of an ``arrow.fixed_shape_tensor``."""
    shape = ",".join([str(impl.c_sizes[i]) for i in range(1, impl.ndim)])
    pairs = ((b"ARROW:extension:name", b"arrow.fixed_shape_tensor"),
             (b"ARROW:extension:metadata", f'{{"shape":[{shape}]}}'.encode()))
    found = _length(len(pairs))
    for key, value in pairs:
        found += _length(len(<bytes>key)) + <bytes>key + _length(len(<bytes>value)) + <bytes>value
    return found


cdef bytes _length(int32_t n):
    return (<char*>&n)[:sizeof(n)]


cdef int64_t _row(TensorImpl impl) noexcept:
    """Return the number of elements of a row; negative: more than an int64 counts."""
    return checked_numel(impl.c_sizes + 1, impl.ndim - 1)


cdef int _require(TensorImpl impl, str caller) except -1:
    """Raise EnforceBufferError unless Arrow has such arrays."""
    if not impl.c_dtype.c_is_pod:
        refuse_non_pod(impl, caller)
    impl.require_defined(caller)
    if impl.c_dtype.name not in _FORMATS:
        raise EnforceBufferError(
            f"Arrow has no type for {impl.c_dtype}. Use to('float32'), or view the elements as "
            "integers.", caller)
    if impl.ndim == 0:
        raise EnforceBufferError(
            "An Arrow array has at least one dimension, and the tensor has none. Use reshape(1).",
            caller, condition="dim() > 0")
    if not impl.flags & CONTIGUOUS:
        raise EnforceBufferError(
            f"Arrow's arrays are row-major, and the tensor has strides {impl.strides().vec()}. "
            "Call contiguous().", caller, condition="is_contiguous()")
    if not 0 <= _row(impl) <= MAX_LIST:
        raise EnforceBufferError(
            f"The tensor has the sizes {impl.sizes().vec()}, and a list of Arrow, which is a row, "
            f"at most {MAX_LIST} elements.", caller)
    return 0


cdef object _capsule(void* structure, const char* name, PyCapsule_Destructor destructor):
    """Return a capsule of a structure that is all zeros; without memory, free it."""
    try:
        return PyCapsule_New(structure, name, destructor)
    except MemoryError:
        free(structure)
        raise


cpdef object arrow_schema(TensorImpl impl):  # pyi: CapsuleType
    """Return a capsule of the ArrowSchema of a tensor. Raises BufferError: see `_require`."""
    cdef ArrowSchema* schema
    cdef SchemaBlock* block
    cdef bytes text
    impl = seen(impl)
    _require(impl, "__arrow_c_schema__")
    text = _FORMATS[impl.c_dtype.name]
    schema = <ArrowSchema*>calloc(1, sizeof(ArrowSchema))
    if schema == NULL:
        raise MemoryError()
    capsule = _capsule(schema, "arrow_schema", _delete_schema)
    if impl.ndim == 1:
        _fill_schema(schema, text, b"")
        return capsule
    _fill_schema(schema, b"+w:%d" % _row(impl), _extension(impl))
    block = <SchemaBlock*>schema.private_data
    _fill_schema(&block.child, text, b"")
    block.child.name = b"item"
    block.children = &block.child
    schema.children = &block.children
    schema.n_children = 1
    return capsule


cdef int _export(TensorImpl impl, char* data, object ctx, ArrowArray* array) except -1:
    """Fill `array` with the tensor at `data`, which `ctx` keeps alive."""
    cdef ArrayBlock* block
    cdef ArrowArray* values = array
    if impl.ndim > 1:
        _fill_array(array, impl.c_sizes[0], 1)
        block = <ArrayBlock*>array.private_data
        values = &block.child
        _fill_array(values, impl.c_numel, 2)
        block.children = values
        array.children = &block.children
        array.n_children = 1
    else:
        _fill_array(values, impl.c_numel, 2)
    block = <ArrayBlock*>values.private_data
    block.buffers[1] = data
    Py_INCREF(ctx)
    block.ctx = <void*>ctx
    return 0


cdef TensorImpl _with_bits(TensorImpl impl):
    """Return the bytes of a bitmap of booleans, of which Arrow packs eight into one."""
    cdef TensorImpl out
    cdef int64_t i, size = (impl.c_numel + 7) // 8
    cdef const uint8_t* source
    cdef uint8_t* to
    cdef char* data
    if not host_accessible(device_type_of(impl)):
        raise EnforceBufferError(
            "Arrow packs booleans into bits, which is done in host memory only. Use to('uint8').",
            "__arrow_c_device_array__")
    report_copy(impl.c_numel, "Arrow packs booleans into bits")
    out = allocated(&size, 1, uint8_type, DL_CPU, 0, "__arrow_c_array__")
    _keep = impl.held(&data, "__arrow_c_array__")
    source = <const uint8_t*>data
    to = <uint8_t*>out.data("__arrow_c_array__")
    for i in range(size):
        to[i] = 0
    for i in range(impl.c_numel):
        to[i // 8] |= (source[i] != 0) << (i % 8)
    return out


cdef int _export_memory(TensorImpl impl, ArrowArray* array, str caller) except -1:
    cdef TensorImpl memory
    cdef char* data
    impl = seen(impl)
    memory = _with_bits(impl) if impl.c_dtype.name == "bool" else impl
    owner = retained_owner(memory, &data, caller)
    return _export(impl, data, owner, array)


cdef TensorImpl _as_requested(TensorImpl impl, object requested, str caller):
    """Return `impl` with elements of the type in a capsule that a consumer passed.

    Raises BufferError: not a type of numbers, or one that cannot hold the values.
    """
    cdef Field field
    if requested is None or not host_accessible(device_type_of(impl)):
        return impl
    field = read_field(schema_of(requested, type(requested)), type(requested))
    if field.all_null or field.bool8 or field.dtype is impl.c_dtype:
        return impl
    import numpy
    array = export_array(impl, caller)
    with numpy.errstate(invalid="ignore", over="ignore"):
        cast = array.astype(field.dtype.numpy)
        # between floating-point types only precision is lost, as Arrow's own casts allow
        fits = cast.dtype.kind == array.dtype.kind == "f" or bool(
            ((cast == array) & (cast.astype(array.dtype) == array)).all())
    if not fits:
        raise EnforceBufferError(
            f"Some values do not fit {field.dtype}, which the consumer asked for. Convert the "
            "tensor with to(), or ask for another type.", caller)
    report_copy(array.nbytes, f"{impl.c_dtype} becomes {field.dtype}")
    return import_array(cast, None)


cpdef tuple arrow_array(
    TensorImpl impl, object requested: object
):  # pyi: tuple[CapsuleType, CapsuleType]
    """Return capsules of the ArrowSchema and the ArrowArray of a tensor in host memory.

    Raises EnforceBufferError: see `_require` and `_as_requested`, or the memory is on a device.
    """
    cdef ArrowArray* array
    impl = seen(impl)
    if requested is not None:
        _require(impl, "__arrow_c_array__")
        impl = _as_requested(impl, requested, "__arrow_c_array__")
    schema = arrow_schema(impl)
    if not host_accessible(device_type_of(impl)):
        raise EnforceBufferError(
            f"The memory is on {impl.device()}, which __arrow_c_array__ cannot say. Use cpu(), or "
            "__arrow_c_device_array__.", "__arrow_c_array__")
    array = <ArrowArray*>calloc(1, sizeof(ArrowArray))
    if array == NULL:
        raise MemoryError()
    capsule = _capsule(array, "arrow_array", _delete_array)
    _export_memory(impl, array, "__arrow_c_array__")
    return schema, capsule


cpdef tuple arrow_device_array(
    TensorImpl impl, object requested: object
):  # pyi: tuple[CapsuleType, CapsuleType]
    """Return capsules of the ArrowSchema and the ArrowDeviceArray of a tensor on any device.

    The work on CUDA memory is waited for, so the array carries no event. Raises
    EnforceBufferError: see `_require` and `_as_requested`.
    """
    cdef ArrowDeviceArray* array
    cdef int32_t kind, index
    impl = seen(impl)
    if requested is not None:
        _require(impl, "__arrow_c_device_array__")
        impl = _as_requested(impl, requested, "__arrow_c_device_array__")
    schema = arrow_schema(impl)
    kind, index = device_type_of(impl), device_index_of(impl)
    if has_streams(kind):
        from bridge.exchange.streams import synchronise_host
        synchronise_host(index)
    array = <ArrowDeviceArray*>calloc(1, sizeof(ArrowDeviceArray))
    if array == NULL:
        raise MemoryError()
    capsule = _capsule(array, "arrow_device_array", _delete_device_array)
    _export_memory(impl, &array.array, "__arrow_c_device_array__")
    if impl.c_dtype.name == "bool":
        kind = DL_CPU           # where the bits are
    array.device_type = kind
    array.device_id = -1 if kind == DL_CPU else max(index, 0)
    return schema, capsule


# The destructors of capsules. A consumer that moves a structure sets its release to NULL.

cdef void _delete_schema(object capsule) noexcept:
    cdef ArrowSchema* schema = <ArrowSchema*>PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef void _delete_array(object capsule) noexcept:
    cdef ArrowArray* array = <ArrowArray*>PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)


cdef void _delete_device_array(object capsule) noexcept:
    cdef ArrowDeviceArray* array = <ArrowDeviceArray*>PyCapsule_GetPointer(
        capsule, "arrow_device_array")
    if array.array.release != NULL:
        array.array.release(&array.array)
    free(array)
