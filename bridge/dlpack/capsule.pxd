# SPDX-License-Identifier: Apache-2.0
from bridge.dlpack.abi cimport DLManagedTensorVersioned, DLTensor

cdef class ManagedTensor:
    # DLManagedTensorVersioned* if `versioned`, else DLManagedTensor*; NULL: nothing is owned
    cdef void* managed
    cdef bint versioned
    cdef object source          # the class of the object that exported it; None: unknown
    cdef DLTensor* tensor(self) noexcept
    cdef bint readonly(self) noexcept
    cdef bint copied(self) noexcept
    cdef bint padded(self) noexcept

cdef void call_deleter(void* managed, bint versioned) noexcept
cdef ManagedTensor own_versioned(DLManagedTensorVersioned* managed)
cdef ManagedTensor consume_capsule(object capsule)
cdef object new_capsule(void* managed, bint versioned)
