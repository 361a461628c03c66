# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Take tensors out of DLPack capsules and put them in; the only caller of deleters."""

cimport cython
from cpython.object cimport PyObject
from cpython.pycapsule cimport (
    PyCapsule_CheckExact,
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_IsValid,
    PyCapsule_SetDestructor,
    PyCapsule_SetName,
)

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
    # as C sees it: NULL is checked here, without the cost of a Python try
    PyObject* new_capsule "PyCapsule_New"(void*, const char*, void (*)(object) noexcept)
    void drop_one "Py_DECREF"(PyObject*)

# PyCapsule keeps the pointer to its name, so the names live as long as the module.
cdef const char* LEGACY = "dltensor"
cdef const char* VERSIONED = "dltensor_versioned"
cdef const char* USED_LEGACY = "used_dltensor"
cdef const char* USED_VERSIONED = "used_dltensor_versioned"


cdef void call_deleter(void* managed, bint versioned) noexcept:
    if managed == NULL:
        return
    if versioned:
        if (<DLManagedTensorVersioned*>managed).deleter != NULL:
            (<DLManagedTensorVersioned*>managed).deleter(<DLManagedTensorVersioned*>managed)
    elif (<DLManagedTensor*>managed).deleter != NULL:
        (<DLManagedTensor*>managed).deleter(<DLManagedTensor*>managed)


@cython.freelist(64)
cdef class ManagedTensor:
    """The one owner of a DLPack tensor from elsewhere; its end calls the deleter, once."""

    def __init__(self):
        raise TypeError("A ManagedTensor is made by importing a DLPack tensor.")

    def __dealloc__(self):
        cdef void* managed = self.managed
        self.managed = NULL
        call_deleter(managed, self.versioned)

    cdef DLTensor* tensor(self) noexcept:
        if self.versioned:
            return &(<DLManagedTensorVersioned*>self.managed).dl_tensor
        return &(<DLManagedTensor*>self.managed).dl_tensor

    cdef bint readonly(self) noexcept:
        # A legacy tensor cannot say; DLPack before 1.0 knew writable memory only.
        return self.versioned and (
            (<DLManagedTensorVersioned*>self.managed).flags & DLPACK_READ_ONLY) != 0

    cdef bint copied(self) noexcept:
        return self.versioned and (
            (<DLManagedTensorVersioned*>self.managed).flags & DLPACK_IS_COPIED) != 0

    cdef bint padded(self) noexcept:
        return self.versioned and (
            (<DLManagedTensorVersioned*>self.managed).flags & DLPACK_SUBBYTE_PADDED) != 0


cdef ManagedTensor own_versioned(DLManagedTensorVersioned* managed):
    """Own `managed`, whose major version must be ours; otherwise delete it and refuse.

    In a tensor of another major version only the version and the deleter have
    a known place (DLPack 1.3, DLPackVersion).
    """
    cdef ManagedTensor owner = ManagedTensor.__new__(ManagedTensor)
    if managed == NULL:
        raise BufferError("The producer gave a NULL DLManagedTensorVersioned.")
    return _own(owner, managed)


cdef ManagedTensor _own(ManagedTensor owner, DLManagedTensorVersioned* managed):
    owner.managed = managed
    owner.versioned = True
    if managed.version.major != DLPACK_MAJOR:
        raise BufferError(
            f"The DLPack tensor is of version {managed.version.major}.{managed.version.minor}; "
            f"only major version {DLPACK_MAJOR} is understood. "
            f"Ask the producer for max_version=({DLPACK_MAJOR}, 0).")
    return owner


cdef ManagedTensor take(object capsule):
    """Consume a capsule, versioned or legacy: rename it and own what it held."""
    cdef ManagedTensor owner
    cdef void* managed
    cdef bint versioned
    cdef const char* name
    if not PyCapsule_CheckExact(capsule):
        raise TypeError(
            f"A DLPack capsule is a PyCapsule, not {type(capsule).__name__!r}.")
    if PyCapsule_IsValid(capsule, VERSIONED):
        versioned = True
    elif PyCapsule_IsValid(capsule, LEGACY):
        versioned = False
    else:
        name = PyCapsule_GetName(capsule)
        shown = None if name == NULL else (<bytes>name).decode("utf-8", "backslashreplace")
        if shown is not None and shown.startswith("used_dltensor"):
            raise BufferError(
                "The DLPack capsule has been consumed already; a capsule can be taken once. "
                "Ask the producer for a new one.")
        raise BufferError(
            f"The capsule's name is {shown!r}; a DLPack capsule's is 'dltensor' or "
            "'dltensor_versioned'.")
    managed = PyCapsule_GetPointer(capsule, VERSIONED if versioned else LEGACY)
    owner = ManagedTensor.__new__(ManagedTensor)
    # Nothing fails between here and the owner's taking over. Renamed, the capsule's destructor
    # leaves the tensor alone.
    PyCapsule_SetName(capsule, USED_VERSIONED if versioned else USED_LEGACY)
    PyCapsule_SetDestructor(capsule, NULL)
    if versioned:
        return _own(owner, <DLManagedTensorVersioned*>managed)
    owner.managed = managed
    owner.versioned = False
    return owner


# The destructors of capsules that nobody took. The name tells: a consumer renames.
cdef void _unconsumed_versioned(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, VERSIONED):
        call_deleter(PyCapsule_GetPointer(capsule, VERSIONED), True)


cdef void _unconsumed_legacy(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, LEGACY):
        call_deleter(PyCapsule_GetPointer(capsule, LEGACY), False)


cdef object make(void* managed, bint versioned):
    """Wrap `managed` in a capsule that deletes it unless somebody takes it."""
    cdef PyObject* capsule
    if versioned:
        capsule = new_capsule(managed, VERSIONED, _unconsumed_versioned)
    else:
        capsule = new_capsule(managed, LEGACY, _unconsumed_legacy)
    if capsule == NULL:
        call_deleter(managed, versioned)
        raise MemoryError("A DLPack capsule could not be made.")
    made = <object>capsule
    drop_one(capsule)           # <object> took a reference of its own
    return made
