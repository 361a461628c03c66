# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef TensorImpl import_torch(object tensor, object copy)
cpdef TensorImpl import_any_torch(object tensor, object copy=*)
cpdef int refuse_gradient(object tensor) except -1
cdef object clone_torch(object tensor)
