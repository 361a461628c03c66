# SPDX-License-Identifier: Apache-2.0
from bridge.dlpack.abi cimport DLManagedTensor, DLManagedTensorVersioned

# Who may delete an exported tensor; see the module's docstring.
cdef enum:
    CONSUMED = 0
    HELD = 1
    IN_CAPSULE = 2

cdef DLManagedTensorVersioned* new_versioned(object ctx, int ndim, int use) except NULL
cdef DLManagedTensor* new_legacy(object ctx, int ndim) except NULL
cdef bint release_versioned(DLManagedTensorVersioned* managed, bint accepted) noexcept
cdef void drop_owner(void* ctx) noexcept nogil
