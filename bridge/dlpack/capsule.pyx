# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""DLPack capsules: consuming and creating them. Only this module calls deleters."""

cimport cython
from cpython.object cimport PyObject
from cpython.pycapsule cimport (
    PyCapsule_CheckExact,
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_IsValid,
)
from cpython.ref cimport Py_DECREF

from bridge.dlpack.abi cimport (
    DLPACK_IS_COPIED,
    DLPACK_MAJOR,
    DLPACK_READ_ONLY,
    DLPACK_SUBBYTE_PADDED,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLTensor,
)

cdef extern from "Python.h":
    # Returns NULL on failure, which is checked here without the cost of a Python try.
    PyObject* pycapsule_new "PyCapsule_New"(void*, const char*, void (*)(object) noexcept)

cdef extern from *:
    """
    #ifndef Py_GIL_DISABLED     /* no other thread runs before it ends */
    #define BRIDGE_BEGIN_TAKING(capsule)
    #define BRIDGE_END_TAKING()
    #else
    #define BRIDGE_BEGIN_TAKING(capsule) Py_BEGIN_CRITICAL_SECTION(capsule)
    #define BRIDGE_END_TAKING() Py_END_CRITICAL_SECTION()
    #endif
    static void *bridge_take(PyObject *capsule, const char *name, const char *used) {
        void *tensor = NULL;
        BRIDGE_BEGIN_TAKING(capsule);
        if (PyCapsule_IsValid(capsule, name)) {
            tensor = PyCapsule_GetPointer(capsule, name);
            PyCapsule_SetName(capsule, used);
            PyCapsule_SetDestructor(capsule, NULL);     /* which would not delete it any more */
        }
        BRIDGE_END_TAKING();
        return tensor;
    }
    """
    # Return the pointer of a capsule of that name, which is renamed; NULL: it has another name.
    void* take "bridge_take"(object capsule, const char* name, const char* used) noexcept

# PyCapsule keeps the pointer to its name, so the names are static.
cdef const char* LEGACY = "dltensor"
cdef const char* VERSIONED = "dltensor_versioned"
cdef const char* USED_LEGACY = "used_dltensor"
cdef const char* USED_VERSIONED = "used_dltensor_versioned"


cdef void call_deleter(void* managed, bint versioned) noexcept:
    """Call the deleter of a managed tensor; NULL tensors and NULL deleters are allowed."""
    if managed == NULL:
        return
    if versioned:
        if (<DLManagedTensorVersioned*>managed).deleter != NULL:
            (<DLManagedTensorVersioned*>managed).deleter(<DLManagedTensorVersioned*>managed)
    elif (<DLManagedTensor*>managed).deleter != NULL:
        (<DLManagedTensor*>managed).deleter(<DLManagedTensor*>managed)


@cython.freelist(64)
cdef class ManagedTensor:
    """The owner of an imported DLPack tensor; its deallocation calls the deleter, once."""

    def __init__(self):
        raise TypeError("A ManagedTensor is created by importing a DLPack tensor.")

    def __dealloc__(self):
        cdef void* managed = self.managed
        self.managed = NULL
        call_deleter(managed, self.versioned)

    cdef DLTensor* tensor(self) noexcept:
        if self.versioned:
            return &(<DLManagedTensorVersioned*>self.managed).dl_tensor
        return &(<DLManagedTensor*>self.managed).dl_tensor

    cdef bint readonly(self) noexcept:
        # A legacy tensor has no flags: DLPack before 1.0 had writable memory only.
        return self.versioned and (
            (<DLManagedTensorVersioned*>self.managed).flags & DLPACK_READ_ONLY) != 0

    cdef bint copied(self) noexcept:
        return self.versioned and (
            (<DLManagedTensorVersioned*>self.managed).flags & DLPACK_IS_COPIED) != 0

    cdef bint padded(self) noexcept:
        return self.versioned and (
            (<DLManagedTensorVersioned*>self.managed).flags & DLPACK_SUBBYTE_PADDED) != 0


cdef ManagedTensor own_versioned(DLManagedTensorVersioned* managed):
    """Return an owner of `managed`.

    Raises BufferError: NULL, or another major version. The latter is deleted, since all major
    versions have the version and the deleter at the same place (DLPack 1.3, DLPackVersion).
    """
    cdef ManagedTensor owner
    if managed == NULL:
        raise BufferError("The producer returned a NULL DLManagedTensorVersioned.")
    try:
        owner = ManagedTensor.__new__(ManagedTensor)
    except MemoryError:
        call_deleter(managed, True)
        raise
    return _own(owner, managed)


cdef ManagedTensor _own(ManagedTensor owner, DLManagedTensorVersioned* managed):
    owner.managed = managed
    owner.versioned = True
    if managed.version.major != DLPACK_MAJOR:
        raise BufferError(
            f"The DLPack tensor has version {managed.version.major}.{managed.version.minor}; "
            f"only major version {DLPACK_MAJOR} is supported. "
            f"Ask the producer for max_version=({DLPACK_MAJOR}, 0).")
    return owner


cdef ManagedTensor consume_capsule(object capsule):
    """Rename a capsule, versioned or legacy, and return the owner of its tensor.

    One of several threads that consume a capsule at once gets it; other libraries take no part in
    that.

    Raises TypeError: not a capsule. BufferError: not a DLPack capsule, consumed before, or of
    another major version.
    """
    cdef ManagedTensor owner
    cdef void* managed
    cdef bint versioned
    cdef const char* name
    if not PyCapsule_CheckExact(capsule):
        raise TypeError(
            f"A DLPack capsule is a PyCapsule, not {type(capsule).__name__!r}.")
    # First, since it may run Python. Nothing fails from here until the owner has the tensor.
    owner = ManagedTensor.__new__(ManagedTensor)
    managed = take(capsule, VERSIONED, USED_VERSIONED)
    versioned = managed != NULL
    if not versioned:
        managed = take(capsule, LEGACY, USED_LEGACY)
    if managed == NULL:
        name = PyCapsule_GetName(capsule)
        shown = None if name == NULL else (<bytes>name).decode("utf-8", "backslashreplace")
        if shown is not None and shown.startswith("used_dltensor"):
            raise BufferError(
                "The DLPack capsule has been consumed already; a capsule can be consumed once. "
                "Ask the producer for a new one.")
        raise BufferError(
            f"The capsule's name is {shown!r}; a DLPack capsule's is 'dltensor' or "
            "'dltensor_versioned'.")
    if versioned:
        return _own(owner, <DLManagedTensorVersioned*>managed)
    owner.managed = managed
    owner.versioned = False
    return owner


# The destructors of capsules. A consumer renames its capsule, so one with its first name was not
# consumed.
cdef void _unconsumed_versioned(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, VERSIONED):
        call_deleter(PyCapsule_GetPointer(capsule, VERSIONED), True)


cdef void _unconsumed_legacy(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, LEGACY):
        call_deleter(PyCapsule_GetPointer(capsule, LEGACY), False)


cdef object new_capsule(void* managed, bint versioned):
    """Return a capsule of `managed`, which deletes it unless it is consumed. Raises MemoryError."""
    cdef PyObject* capsule
    if versioned:
        capsule = pycapsule_new(managed, VERSIONED, _unconsumed_versioned)
    else:
        capsule = pycapsule_new(managed, LEGACY, _unconsumed_legacy)
    if capsule == NULL:
        call_deleter(managed, versioned)
        raise MemoryError("A DLPack capsule could not be created.")
    made = <object>capsule
    Py_DECREF(made)             # <object> took a reference of its own
    return made
