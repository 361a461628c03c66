# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef TensorImpl held_buffer(object x)
cdef TensorImpl buffer_in(object x, object copy)
