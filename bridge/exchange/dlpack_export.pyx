# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""From TensorImpl to the structs of DLPack; nothing is copied.

A DLPack tensor that leaves is one block of memory: struct, sizes, strides. Its
`manager_ctx` is a reference to the owner of the buffer (`Storage.ctx`), so an
exported tensor stays valid whatever becomes of the tensor and its Storage.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bridge.c10.python_api cimport drop_reference
from bridge.c10.retained cimport retained_data
from bridge.c10.storage cimport READONLY, Storage
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl
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

from bridge.c10.errors import EnforceBufferError

import atexit

cdef extern from "Python.h":
    int Py_IsInitialized() nogil
    int PyGILState_Check() nogil

cdef extern from *:
    """
    #include <unistd.h>

    #if PY_VERSION_HEX >= 0x030D0000
    #define bridge_thread_state PyThreadState_GetUnchecked
    #else
    #define bridge_thread_state _PyThreadState_UncheckedGet
    #endif

    /* Threads that wait for the GIL to drop a reference, and whether none may start to. */
    static int bridge_dropping = 0, bridge_closing = 0;

    static int bridge_may_drop(void) {
        __atomic_add_fetch(&bridge_dropping, 1, __ATOMIC_SEQ_CST);
        if (!__atomic_load_n(&bridge_closing, __ATOMIC_SEQ_CST)) return 1;
        __atomic_sub_fetch(&bridge_dropping, 1, __ATOMIC_SEQ_CST);
        return 0;
    }
    static void bridge_dropped(void) {
        __atomic_sub_fetch(&bridge_dropping, 1, __ATOMIC_SEQ_CST);
    }
    /* Bounded: a child of fork counts threads that it does not have. */
    static void bridge_close(void) {
        __atomic_store_n(&bridge_closing, 1, __ATOMIC_SEQ_CST);
        for (int i = 0; i < 2000 && __atomic_load_n(&bridge_dropping, __ATOMIC_SEQ_CST); ++i)
            usleep(500);
    }
    """
    void* bridge_thread_state() nogil
    int bridge_may_drop() nogil
    void bridge_dropped() nogil
    void bridge_close() nogil


cdef void drop_owner(void* ctx) noexcept nogil:
    """Drop a reference from any thread, at any time.

    A thread that waits for the GIL during finalisation of the interpreter is terminated in place
    (PyGILState_Ensure, before Python 3.14), which aborts the process if C++ frames are on its
    stack; XLA's threads do that. So `_close` waits for the threads that wait for the GIL here, and
    refuses later ones.
    """
    if PyGILState_Check():
        # True after finalisation of the interpreter, too
        if bridge_thread_state() != NULL:
            drop_reference(<PyObject*>ctx)
    elif Py_IsInitialized() and bridge_may_drop():
        with gil:
            drop_reference(<PyObject*>ctx)
        bridge_dropped()
    # else: leak, since nothing else is safe


def _close():
    with nogil:
        bridge_close()


atexit.register(_close)


cdef void _delete_versioned(DLManagedTensorVersioned* self) noexcept nogil:
    cdef void* ctx = self.manager_ctx
    free(self)
    drop_owner(ctx)


cdef void _delete_legacy(DLManagedTensor* self) noexcept nogil:
    cdef void* ctx = self.manager_ctx
    free(self)
    drop_owner(ctx)


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
    cdef int64_t step = 1
    cdef int i
    out.data = data
    _place(impl.storage, impl, out)
    out.shape = dims
    out.strides = dims + impl.ndim
    # Dimensions of size one may have any stride; some consumers want the plain one, and
    # torch no negative one.
    if not impl.flags & CONTIGUOUS:
        memcpy(dims, impl.c_sizes, 2 * impl.ndim * sizeof(int64_t))
        for i in range(impl.ndim):
            if dims[i] == 1 and dims[impl.ndim + i] < 0:
                dims[impl.ndim + i] = 1
        return
    for i in range(impl.ndim - 1, -1, -1):
        dims[i] = impl.c_sizes[i]
        dims[impl.ndim + i] = step
        if dims[i] > 1:
            step *= dims[i]


cdef DLManagedTensorVersioned* export_versioned(TensorImpl impl, int flags) except NULL:
    """Return a new DLManagedTensorVersioned that shares the memory; `flags` besides read-only."""
    cdef DLManagedTensorVersioned* managed
    cdef size_t head = sizeof(DLManagedTensorVersioned)
    cdef char* data
    if not impl.c_dtype.c_is_pod:
        refuse_non_pod(impl, "__dlpack__")
    data = retained_data(impl, "__dlpack__")
    managed = <DLManagedTensorVersioned*>malloc(head + 2 * <size_t>impl.ndim * sizeof(int64_t))
    if managed == NULL:
        raise MemoryError()
    _describe(impl, data, &managed.dl_tensor, <int64_t*>(<char*>managed + head))
    managed.version.major = DLPACK_MAJOR
    managed.version.minor = DLPACK_MINOR
    managed.flags = flags
    if impl.storage.flags & READONLY:
        managed.flags |= DLPACK_READ_ONLY
    if _padded(impl.c_dtype):
        managed.flags |= DLPACK_SUBBYTE_PADDED
    managed.deleter = _delete_versioned
    ctx = impl.storage.ctx
    Py_INCREF(ctx)
    managed.manager_ctx = <void*>ctx
    return managed


cdef DLManagedTensor* export_legacy(TensorImpl impl, bint immutable=False) except NULL:
    """Return a new DLManagedTensor that shares the memory, which must be writable.

    `immutable`: nothing is written through the tensor that imports it, so read-only memory is
    exported, too.
    """
    cdef DLManagedTensor* managed
    cdef size_t head = sizeof(DLManagedTensor)
    cdef char* data
    if impl.storage is not None and impl.storage.flags & READONLY and not immutable:
        raise EnforceBufferError(
            "The memory is read-only, which a legacy DLPack capsule cannot express. Ask for "
            "max_version=(1, 0) or later, or for a copy.", "__dlpack__", condition="!readonly")
    if not impl.c_dtype.c_is_pod:
        refuse_non_pod(impl, "__dlpack__")
    if _padded(impl.c_dtype):
        raise EnforceBufferError(
            f"Each {impl.c_dtype} takes a byte of its own here, which a legacy DLPack capsule "
            "cannot express. Ask for max_version=(1, 1) or later.", "__dlpack__")
    data = retained_data(impl, "__dlpack__")
    managed = <DLManagedTensor*>malloc(head + 2 * <size_t>impl.ndim * sizeof(int64_t))
    if managed == NULL:
        raise MemoryError()
    _describe(impl, data, &managed.dl_tensor, <int64_t*>(<char*>managed + head))
    managed.deleter = _delete_legacy
    ctx = impl.storage.ctx
    Py_INCREF(ctx)
    managed.manager_ctx = <void*>ctx
    return managed


cdef int borrow(TensorImpl impl, DLTensor* out) except -1:
    """Describe `impl` for the time of a call; sizes and strides are those of `impl` itself.

    Read-only memory is accepted, although a DLTensor has no such flag: most arguments of a call
    are only read, and DLPack leaves it to the callee to know which ones it writes.
    """
    cdef Storage storage = impl.storage
    caller = "__dlpack_c_exchange_api__"
    if not impl.c_dtype.c_is_pod:
        refuse_non_pod(impl, caller)
    if _padded(impl.c_dtype):
        raise EnforceBufferError(
            f"Each {impl.c_dtype} takes a byte of its own here, which a bare DLTensor cannot "
            "express. Use __dlpack__.", caller)
    out.data = impl.data(caller)
    _place(storage, impl, out)
    out.shape = impl.c_sizes
    out.strides = impl.c_strides()
    return 0
