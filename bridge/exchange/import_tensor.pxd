# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef object tristate(object copy)
cdef bint is_new(object x, TensorImpl impl) except -1
cpdef TensorImpl import_tensor(object x, object device=*, object copy=*)
