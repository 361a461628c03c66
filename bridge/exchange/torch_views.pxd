# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.storage cimport Storage
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta

cdef bint is_same_tensor(TensorImpl impl, object tensor) except -1
cdef object torch_view(TensorImpl impl, bint inside)
cdef object view_of(TensorImpl impl, object base=*)
cdef object taken_by_torch(TensorImpl impl)
cdef object alias_of(object tensor)
cdef int64_t lead_of_lent(Storage storage) except -1
cpdef TensorImpl whole_storage(Storage storage, TypeMeta dtype)
cpdef object torch_storage(Storage storage)
