# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.dlpack.abi cimport DLManagedTensor, DLManagedTensorVersioned, DLTensor

# Who may delete an exported tensor; see the module's docstring.
cdef enum:
    CONSUMED = 0
    HELD = 1
    IN_CAPSULE = 2

cdef bint release_versioned(DLManagedTensorVersioned* managed, bint accepted) noexcept
cdef void drop_owner(void* ctx) noexcept nogil

cdef DLManagedTensorVersioned* export_versioned(TensorImpl impl, int flags, int use=*) except NULL
cdef DLManagedTensor* export_legacy(TensorImpl impl, bint immutable=*) except NULL
cdef int borrow(TensorImpl impl, DLTensor* out) except -1
cdef int refuse_non_pod(TensorImpl impl, str caller) except -1
