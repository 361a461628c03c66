# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef int copy_into(TensorImpl dst, object value, str caller) except -1
cdef int fill(TensorImpl dst, object value) except -1
cdef int zero(TensorImpl dst) except -1
cpdef write_back(TensorImpl impl, tensor)
