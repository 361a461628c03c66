# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef TensorImpl advanced_index(TensorImpl impl, object key)
cdef int advanced_assign(TensorImpl impl, object key, object value) except -1
