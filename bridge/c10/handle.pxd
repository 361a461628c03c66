# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef class Handle:
    cdef TensorImpl impl        # never None
    cdef object __weakref__
