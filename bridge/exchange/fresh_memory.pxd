# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cpdef bint must_prove(object copy) except -1
cpdef bint is_same(TensorImpl first, TensorImpl second) except -1
cpdef TensorImpl as_copy(TensorImpl impl, object x, object copy, str reason=*)
cpdef TensorImpl keeping(TensorImpl impl, object x)

cdef class KeptMemory:
    cdef readonly object memory  # pyi: Any
    cdef readonly object source  # pyi: Any
