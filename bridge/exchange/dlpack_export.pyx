# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""From TensorImpl to the structs of DLPack; nothing is copied.

A DLPack tensor that leaves owns a reference to the owner of the buffer (`Storage.ctx`), so it stays
valid whatever becomes of the tensor and its Storage; see `dlpack_deleters`.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from bridge.c10.layout cimport contiguous_strides
from bridge.c10.retained cimport retained_owner
from bridge.c10.storage cimport READONLY, Storage
from bridge.c10.tensor_impl cimport (
    TensorImpl,
    dtype_of,
    is_pod_now,
    is_undefined,
    seen,
    storage_flags,
)
from bridge.c10.type_meta cimport TypeMeta
from bridge.dlpack.abi cimport (
    DLPACK_MAJOR,
    DLPACK_MINOR,
    DLPACK_READ_ONLY,
    DLPACK_SUBBYTE_PADDED,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLTensor,
)
from bridge.exchange.dlpack_deleters cimport CONSUMED, new_legacy, new_versioned

from bridge.c10.errors import EnforceBufferError


cdef int refuse_non_pod(TensorImpl impl, str caller) except -1:
    """Raise EnforceBufferError for a tensor that is not POD, without a type, or undefined."""
    impl.require_defined(caller)
    if not impl.c_dtype:
        raise EnforceBufferError(
            "The tensor has no element type yet, so there is nothing to exchange. Call "
            "mutable_data(T) first.", caller, condition="dtype_initialized()")
    raise EnforceBufferError(
        f"Elements of the non-POD type {impl.c_dtype} are Python objects, not plain memory, so "
        "they cannot be exchanged. Read them through data().", caller, condition="dtype().is_pod")


cdef bint _padded(TypeMeta dtype) noexcept:
    """Return whether elements of under eight bits take a byte each (a flag of DLPack 1.1)."""
    return dtype.c_dlpack.bits < 8 and dtype.c_dlpack.lanes == 1


cdef inline void _place(Storage storage, TensorImpl impl, DLTensor* out) noexcept:
    """Fill in what does not depend on where sizes and strides are kept."""
    out.device.device_type = storage.device_type
    out.device.device_id = storage.device_index if storage.device_index >= 0 else 0
    out.ndim = impl.ndim
    out.dtype = impl.c_dtype.c_dlpack
    out.byte_offset = 0


cdef void _describe(TensorImpl impl, char* data, DLTensor* out, int64_t* dims) noexcept:
    """Fill `out`; sizes and strides go to `dims`, 2 * ndim of them."""
    cdef int64_t* strides = dims + impl.ndim
    cdef int i
    out.data = data if impl.c_numel else NULL     # NULL without elements, as dlpack.h asks
    _place(impl.storage, impl, out)
    out.shape = dims
    out.strides = strides
    memcpy(dims, impl.c_sizes, impl.ndim * sizeof(int64_t))
    if impl.c_numel == 0:
        contiguous_strides(dims, strides, impl.ndim)    # NumPy's are 0
        return
    memcpy(strides, impl.c_strides(), impl.ndim * sizeof(int64_t))
    # As they are, but where no element depends on it none is negative: torch has no such strides.
    for i in range(impl.ndim):
        if strides[i] < 0 and dims[i] == 1:
            strides[i] = 1


cdef DLManagedTensorVersioned* export_versioned(
    TensorImpl impl, int flags, int use=CONSUMED,
) except NULL:
    """Return a new DLManagedTensorVersioned that shares the memory.

    `flags`: besides read-only. `use`: who may delete it; see `dlpack_deleters`.
    """
    cdef DLManagedTensorVersioned* managed
    cdef char* data
    impl = seen(impl)
    if not impl.c_dtype.c_is_pod:
        refuse_non_pod(impl, "__dlpack__")
    ctx = retained_owner(impl, &data, "__dlpack__")
    managed = new_versioned(ctx, impl.ndim, use)
    _describe(impl, data, &managed.dl_tensor, managed.dl_tensor.shape)
    managed.version.major = DLPACK_MAJOR
    managed.version.minor = DLPACK_MINOR
    managed.flags = flags
    if storage_flags(impl) & READONLY:
        managed.flags |= DLPACK_READ_ONLY
    if _padded(impl.c_dtype):
        managed.flags |= DLPACK_SUBBYTE_PADDED
    return managed


cdef DLManagedTensor* export_legacy(TensorImpl impl, bint immutable=False) except NULL:
    """Return a new DLManagedTensor for a capsule; it shares the memory, which must be writable.

    `immutable`: nothing is written through the tensor that imports it, so read-only memory is
    exported, too.
    """
    cdef DLManagedTensor* managed
    cdef char* data
    impl = seen(impl)
    if not is_undefined(impl) and storage_flags(impl) & READONLY and not immutable:
        raise EnforceBufferError(
            "The memory is read-only, which a legacy DLPack capsule cannot express. Ask for "
            "max_version=(1, 0) or later, or for a copy.", "__dlpack__", condition="!readonly")
    if not impl.c_dtype.c_is_pod:
        refuse_non_pod(impl, "__dlpack__")
    if _padded(impl.c_dtype):
        raise EnforceBufferError(
            f"Each {impl.c_dtype} takes a byte of its own here, which a legacy DLPack capsule "
            "cannot express. Ask for max_version=(1, 1) or later.", "__dlpack__")
    ctx = retained_owner(impl, &data, "__dlpack__")
    managed = new_legacy(ctx, impl.ndim)
    _describe(impl, data, &managed.dl_tensor, managed.dl_tensor.shape)
    return managed


cdef int borrow(TensorImpl impl, DLTensor* out) except -1:
    """Describe `impl` for the time of a call; sizes and strides are those of `impl` itself.

    Nobody may change the tensor meanwhile, in another thread either.

    Read-only memory is accepted, although a DLTensor has no such flag: most arguments of a call
    are only read, and DLPack leaves it to the callee to know which ones it writes.
    """
    caller = "__dlpack_c_exchange_api__"
    if not is_pod_now(impl):
        refuse_non_pod(impl, caller)
    if _padded(<TypeMeta>dtype_of(impl)):
        raise EnforceBufferError(
            f"Each {impl.dtype()} takes a byte of its own here, which a bare DLTensor cannot "
            "express. Use __dlpack__.", caller)
    with cython.critical_section(impl):
        out.data = impl.data(caller) if impl.c_numel else NULL
        _place(impl.storage, impl, out)
        out.shape = impl.c_sizes
        out.strides = impl.c_strides()
    return 0
