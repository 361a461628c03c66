# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cpdef TensorImpl plain_buffer(object x)
cdef TensorImpl buffer_in(object x, object copy)
