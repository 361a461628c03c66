# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The DLPack tensors that leave: allocation, and deletion exactly once.

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

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport malloc

from bridge.dlpack.abi cimport DLManagedTensor, DLManagedTensorVersioned

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
