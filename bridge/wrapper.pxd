# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef class Wrapper:
    cdef TensorImpl impl        # never None
    cdef object __weakref__

cdef int inherit_metadata(object cls) except -1
