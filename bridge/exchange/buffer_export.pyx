# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""From TensorImpl to Python's buffer protocol (PEP 3118), and to what describes memory by address.

Those are ``__array_interface__`` and ``__cuda_array_interface__``, both version 3. Nothing is
copied.
"""

from weakref import WeakKeyDictionary

from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS,
    PyBUF_C_CONTIGUOUS,
    PyBUF_F_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_ND,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free, malloc

from bridge.c10.device cimport host_accessible
from bridge.c10.layout cimport wrapped_mul
from bridge.c10.retained cimport retained_data, retained_owner
from bridge.c10.storage cimport READONLY, Storage
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    device_index_of,
    device_type_of,
    is_undefined,
    seen,
    storage_flags,
)
from bridge.dlpack.abi cimport DL_CUDA, DL_CUDA_MANAGED
from bridge.exchange.dlpack_export cimport refuse_non_pod
from bridge.exchange.numpy cimport most_dimensions

from bridge.c10.errors import EnforceBufferError, EnforceNotMet


cdef int _require_buffer(TensorImpl impl, int flags) except -1:
    """Refuse what a buffer cannot be, and what a consumer with `flags` cannot take."""
    impl.require_defined("memoryview")
    if not impl.c_dtype.c_is_pod:
        refuse_non_pod(impl, "memoryview")
    if impl.c_dtype.format is None and flags & PyBUF_FORMAT:
        raise EnforceBufferError(
            f"The buffer protocol has no format for {impl.c_dtype}. Use numpy(), or view the "
            "bytes.", "memoryview")
    if not host_accessible(device_type_of(impl)):
        raise EnforceBufferError(
            f"The memory is on {impl.device()}, where the buffer protocol does not reach. "
            "Use cpu().", "memoryview")
    if impl.ndim > 64:
        raise EnforceBufferError(
            f"A buffer has at most 64 dimensions, and the tensor has {impl.ndim}.",
            "memoryview")
    if flags & PyBUF_WRITABLE and storage_flags(impl) & READONLY:
        raise EnforceBufferError("The memory is read-only.", "memoryview", condition="!readonly")
    if impl.flags & CONTIGUOUS:
        if flags & PyBUF_F_CONTIGUOUS == PyBUF_F_CONTIGUOUS and not _column_major(impl):
            raise EnforceBufferError(
                "The tensor is row-major and not column-major.", "memoryview")
    elif flags & PyBUF_STRIDES != PyBUF_STRIDES \
            or flags & PyBUF_C_CONTIGUOUS == PyBUF_C_CONTIGUOUS \
            or (flags & PyBUF_ANY_CONTIGUOUS == PyBUF_ANY_CONTIGUOUS
                or flags & PyBUF_F_CONTIGUOUS == PyBUF_F_CONTIGUOUS) and not _column_major(impl):
        raise EnforceBufferError(
            "The tensor is not contiguous, which this consumer asks for. Call "
            "contiguous().", "memoryview", condition="is_contiguous()")
    return 0


cdef bint _column_major(TensorImpl impl) noexcept:
    """Return whether the elements lie without gaps, the first dimension fastest."""
    cdef int64_t step = 1
    cdef int i
    for i in range(impl.ndim):
        if impl.c_numel and impl.c_sizes[i] != 1 and impl.c_strides()[i] != step:
            return False
        step *= impl.c_sizes[i]
    return True


cdef int fill_buffer(TensorImpl impl, object exporter, Py_buffer* buffer, int flags) except -1:
    """Export `impl` through the buffer protocol; the memory outlives the tensor's changes.

    `buffer.obj` is `exporter`, whose __releasebuffer__ calls release_buffer.
    """
    cdef Py_ssize_t* block
    cdef Py_ssize_t* dims
    cdef Storage storage
    cdef Py_ssize_t itemsize
    cdef char* data
    cdef int i
    buffer.obj = None
    impl = seen(impl)
    _require_buffer(impl, flags)
    # The owner of the memory rides along, since the exporter may get other memory.
    ctx = retained_owner(impl, &data, "memoryview")
    storage = impl.storage
    itemsize = impl.c_dtype.itemsize
    block = <Py_ssize_t*>malloc((2 * impl.ndim + 1) * sizeof(Py_ssize_t))
    if block == NULL:
        raise MemoryError()
    Py_INCREF(ctx)
    block[0] = <Py_ssize_t><uintptr_t><void*>ctx
    dims = block + 1
    for i in range(impl.ndim):
        dims[i] = impl.c_sizes[i]
        dims[impl.ndim + i] = wrapped_mul(impl.c_strides()[i], itemsize)
    buffer.buf = data if data != NULL else <void*>block
    buffer.len = impl.c_numel * itemsize
    buffer.itemsize = itemsize
    buffer.readonly = storage.flags & READONLY
    # a consumer that asks for bytes without dimensions, as hashlib, gets one of bytes
    buffer.ndim = impl.ndim if flags & PyBUF_ND else 1
    buffer.format = <char*>impl.c_dtype.format if flags & PyBUF_FORMAT else NULL
    # (without dimensions there is neither, as PEP 3118 has it)
    buffer.shape = dims if flags & PyBUF_ND and impl.ndim else NULL
    buffer.strides = dims + impl.ndim \
        if flags & PyBUF_STRIDES == PyBUF_STRIDES and impl.ndim else NULL
    buffer.suboffsets = NULL
    buffer.internal = block
    buffer.obj = exporter
    return 0


cdef void release_buffer(Py_buffer* buffer) noexcept:
    cdef Py_ssize_t* block = <Py_ssize_t*>buffer.internal
    if block != NULL:
        buffer.internal = NULL
        Py_DECREF(<object><void*><uintptr_t>block[0])
        free(block)


# The interfaces.

# TensorImpl -> the owners of the memory whose addresses were handed out. A consumer keeps the
# tensor and no owner, and the tensor may be given other memory.
cdef object _owners = WeakKeyDictionary()


cdef dict _described(TensorImpl impl, object dtype, uintptr_t address):
    """Return what both interfaces say of memory at `address`."""
    return {
        "shape": tuple(impl.sizes()),
        "typestr": dtype.str,
        "data": (address, bool(storage_flags(impl) & READONLY)),
        "strides": None if impl.flags & CONTIGUOUS else tuple(
            [step * impl.c_dtype.itemsize for step in impl.strides()]),
        "version": 3,
    }


def export_array_interface(TensorImpl exported) -> dict[str, Any]:
    """Return the description of host memory. Raises AttributeError: the memory is not the host's,
    not allocated, or the interface has no name for its element type."""
    cdef TensorImpl impl = seen(exported)
    cdef char* data
    try:
        impl.require_defined("__array_interface__")
        dtype = impl.c_dtype.numpy if impl.c_dtype.c_is_pod else None
        # ml_dtypes adds types that have no name of their own
        if dtype is None or dtype.isbuiltin != 1:
            raise AttributeError(
                f"__array_interface__ has no name for elements of {impl.c_dtype}; numpy() and "
                "__dlpack__ have.")
        if impl.ndim > most_dimensions():       # which NumPy 1.26 does not check
            raise AttributeError(
                f"__array_interface__ is for at most {most_dimensions()} dimensions, and the "
                f"tensor has {impl.ndim}.")
        if not host_accessible(device_type_of(impl)):
            raise AttributeError(
                f"__array_interface__ is for host memory, and this tensor is on {impl.device()}.")
        owner = retained_owner(impl, &data, "__array_interface__")
    except (EnforceNotMet, ImportError) as error:
        raise AttributeError(f"__array_interface__: {error}") from error
    owners = _owners.setdefault(exported, [])
    if not any([one is owner for one in owners]):
        owners.append(owner)
    return _described(impl, dtype, <uintptr_t>data)


def export_cuda_interface(TensorImpl exported) -> dict[str, Any]:
    """Return the description of CUDA memory. Raises AttributeError: it is not CUDA memory, or
    the interface has no name for its element type."""
    cdef TensorImpl impl = seen(exported)
    cdef char* data
    if is_undefined(impl) or device_type_of(impl) not in (DL_CUDA, DL_CUDA_MANAGED):
        where = "undefined" if is_undefined(impl) else f"on {impl.device()}"
        raise AttributeError(
            f"__cuda_array_interface__ is for CUDA memory, and this tensor is {where}.")
    if not impl.c_dtype.c_is_pod:
        raise AttributeError("__cuda_array_interface__ is for POD elements.")
    dtype = impl.c_dtype.numpy
    # torch describes bfloat16 as NumPy's "V2"; for other types that NumPy lacks, that is ambiguous.
    # Types of ml_dtypes are not built in: "f1", say, names none of them.
    if dtype.isbuiltin != 1 and impl.c_dtype.name != "bfloat16":
        raise AttributeError(
            f"__cuda_array_interface__ has no name for elements of {impl.c_dtype}; "
            "__dlpack__ has.")
    data = retained_data(impl, "__cuda_array_interface__")
    from bridge.exchange.streams import current_stream
    # the address of no elements is 0 (version 3)
    description = _described(impl, dtype, <uintptr_t>data if impl.c_numel else 0)
    description["stream"] = current_stream(device_index_of(impl))
    return description
