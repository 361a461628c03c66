# SPDX-License-Identifier: Apache-2.0
from bridge.dlpack.abi cimport DLManagedTensorVersioned, DLTensor

cdef class ManagedTensor:
    cdef void* managed          # DLManagedTensorVersioned* or DLManagedTensor*; NULL: nothing owned
    cdef bint versioned
    cdef DLTensor* tensor(self) noexcept
    cdef bint readonly(self) noexcept
    cdef bint copied(self) noexcept
    cdef bint padded(self) noexcept

cdef void call_deleter(void* managed, bint versioned) noexcept
cdef ManagedTensor own_versioned(DLManagedTensorVersioned* managed)
cdef ManagedTensor take(object capsule)
cdef object make(void* managed, bint versioned)
