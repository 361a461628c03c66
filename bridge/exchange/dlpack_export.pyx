# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""From TensorImpl to the structs of DLPack; nothing is copied, and deletion happens exactly once.

A DLPack tensor that leaves owns a reference to the owner of the buffer (`Storage.ctx`), so it stays
valid whatever becomes of the tensor and its Storage.

A tensor is one block of memory: struct, use, sizes, strides. Its `manager_ctx` is a reference to
the owner of the buffer, which its deleter drops.

Consumers differ in who deletes a tensor that they refuse. torch's exchange table leaves one of an
unknown element type to the caller and has deleted one on an unknown device; torch.from_dlpack and
TensorFlow delete a tensor and leave its capsule as it was, so that the capsule deletes it again
(torch 2.13, TensorFlow 2.21). So the tensor knows whether it was deleted:

- HELD: the caller has the block until `release_versioned` returns whether the deleter ran.
- IN_CAPSULE: the block of a deleted tensor is kept until many others were deleted, so that a second
  call, which comes before the consumer returns, finds a deleted tensor and does nothing.
- CONSUMED: the consumer calls the deleter once. What is HELD becomes that when it is accepted.
"""

import atexit

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport malloc
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

from bridge.c10.errors import EnforceBufferError


cdef extern from "Python.h":
    int Py_IsInitialized() nogil
    int PyGILState_Check() nogil

cdef extern from *:
    """
    #include <stdlib.h>
    #ifndef _WIN32              /* bridge/c10/windows.h has usleep() */
    #include <unistd.h>
    #endif

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

    /* Drop a reference, with the GIL. The owner may own such a tensor itself, and so on: from some
       depth on, owners wait in a list for the outermost call, so that the stack is enough. */
    enum { MAX_DROPS = 32 };
    static __thread int bridge_drops = 0;
    static __thread PyObject *bridge_waiting = NULL;
    static int bridge_postpone(PyObject *owner) {
        PyObject *kind, *error, *trace;
        int done;
        PyErr_Fetch(&kind, &error, &trace);
        if (bridge_waiting == NULL) bridge_waiting = PyList_New(0);
        done = bridge_waiting != NULL && PyList_Append(bridge_waiting, owner) == 0;
        PyErr_Restore(kind, error, trace);
        return done;
    }
    static void bridge_drop(PyObject *owner) {
        Py_ssize_t n;
        if (bridge_drops >= MAX_DROPS && bridge_postpone(owner)) {
            Py_DECREF(owner);           /* the list has it */
            return;
        }
        ++bridge_drops;
        Py_DECREF(owner);
        while (bridge_drops == 1 && bridge_waiting != NULL) {
            n = PyList_GET_SIZE(bridge_waiting);
            if (n == 0) {
                Py_CLEAR(bridge_waiting);
                break;
            }
            owner = PyList_GET_ITEM(bridge_waiting, n - 1);
            Py_INCREF(owner);
            (void)PyList_SetSlice(bridge_waiting, n - 1, n, NULL);      /* shrinks: cannot fail */
            Py_DECREF(owner);
        }
        --bridge_drops;
    }

    enum { CONSUMED, HELD, IN_CAPSULE, DELETED };
    enum { RETIRED = 64 };
    static void *bridge_retired[RETIRED];
    static unsigned bridge_retirements = 0;

    /* Return whether this is the first deletion; frees the block now or later. The second call for
       a tensor IN_CAPSULE comes after the first has returned, so that a store marks it; threads
       that take the same place of the retired replace each other's block there. */
    static int bridge_end(void *block, int64_t *use) {
        int64_t before = __atomic_load_n(use, __ATOMIC_ACQUIRE);
        if (before == IN_CAPSULE) {
            unsigned at = __atomic_load_n(&bridge_retirements, __ATOMIC_RELAXED);
            __atomic_store_n(use, DELETED, __ATOMIC_RELEASE);
            __atomic_store_n(&bridge_retirements, at + 1, __ATOMIC_RELAXED);
            block = __atomic_exchange_n(&bridge_retired[at % RETIRED], block, __ATOMIC_ACQ_REL);
        } else if (before != CONSUMED) {
            before = __atomic_exchange_n(use, DELETED, __ATOMIC_ACQ_REL);
            if (before == DELETED) return 0;
            if (before == HELD) return 1;
        }
        free(block);
        return 1;
    }
    /* Return whether a HELD tensor was deleted; if not, it is CONSUMED from now on. No other thread
       knows what was accepted just now, so that a store does. */
    static int bridge_release(void *block, int64_t *use, int accepted) {
        if (accepted && __atomic_load_n(use, __ATOMIC_RELAXED) == HELD) {
            __atomic_store_n(use, CONSUMED, __ATOMIC_RELAXED);
            return 0;
        }
        if (__atomic_exchange_n(use, CONSUMED, __ATOMIC_ACQ_REL) != DELETED) return 0;
        free(block);
        return 1;
    }
    """
    void* bridge_thread_state() nogil
    int bridge_may_drop() nogil
    void bridge_dropped() nogil
    void bridge_close() nogil
    void bridge_drop(PyObject*) nogil
    bint bridge_end(void* block, int64_t* use) nogil
    bint bridge_release(void* block, int64_t* use, bint accepted) nogil

cdef struct Versioned:
    DLManagedTensorVersioned managed
    int64_t use

cdef struct Legacy:
    DLManagedTensor managed
    int64_t use


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
            bridge_drop(<PyObject*>ctx)
    elif Py_IsInitialized() and bridge_may_drop():
        with gil:
            bridge_drop(<PyObject*>ctx)
        bridge_dropped()
    # else: leak, since nothing else is safe


def _close():
    with nogil:
        bridge_close()


atexit.register(_close)


cdef void _delete_versioned(DLManagedTensorVersioned* self) noexcept nogil:
    cdef void* ctx = self.manager_ctx
    if bridge_end(self, &(<Versioned*>self).use):
        drop_owner(ctx)


cdef void _delete_legacy(DLManagedTensor* self) noexcept nogil:
    cdef void* ctx = self.manager_ctx
    if bridge_end(self, &(<Legacy*>self).use):
        drop_owner(ctx)


cdef DLManagedTensorVersioned* new_versioned(object ctx, int ndim, int use) except NULL:
    """Return a new tensor that owns a reference to `ctx`, with room for sizes and strides."""
    cdef Versioned* block = <Versioned*>malloc(
        sizeof(Versioned) + 2 * <size_t>ndim * sizeof(int64_t))
    if block == NULL:
        raise MemoryError()
    block.use = use
    block.managed.dl_tensor.shape = <int64_t*>(block + 1)
    block.managed.deleter = _delete_versioned
    Py_INCREF(ctx)
    block.managed.manager_ctx = <void*>ctx
    return &block.managed


cdef DLManagedTensor* new_legacy(object ctx, int ndim) except NULL:
    """As `new_versioned`, for a capsule."""
    cdef Legacy* block = <Legacy*>malloc(sizeof(Legacy) + 2 * <size_t>ndim * sizeof(int64_t))
    if block == NULL:
        raise MemoryError()
    block.use = IN_CAPSULE
    block.managed.dl_tensor.shape = <int64_t*>(block + 1)
    block.managed.deleter = _delete_legacy
    Py_INCREF(ctx)
    block.managed.manager_ctx = <void*>ctx
    return &block.managed


cdef bint release_versioned(DLManagedTensorVersioned* managed, bint accepted) noexcept:
    """Let go of a HELD tensor that its consumer accepted or refused.

    Returns whether it was deleted. If not, who has it now deletes it: the consumer that accepted
    it, or the caller.
    """
    return bridge_release(managed, &(<Versioned*>managed).use, accepted)


# Export.

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

    `flags`: besides read-only. `use`: who may delete it; see the docstring of the module.
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
