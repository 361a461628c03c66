# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef bint is_same_tensor(TensorImpl impl, object tensor) except -1
cdef object torch_view(TensorImpl impl, bint inside)
cdef object view_of(TensorImpl impl, object base=*)
cdef object taken_by_torch(TensorImpl impl)
cdef object outgoing_alias(TensorImpl impl, object tensor)
