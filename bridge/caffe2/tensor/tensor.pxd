# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.wrapper cimport Wrapper

cdef class Tensor(Wrapper):
    pass

cdef Tensor wrap(TensorImpl impl)
