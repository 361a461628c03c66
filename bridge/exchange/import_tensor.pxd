# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef object tristate(object copy)
cdef bint is_new(object x, TensorImpl impl) except -1
cpdef TensorImpl import_tensor(object x, object device=*, object copy=*)
cpdef bint has_door(object x) except -1

ctypedef TensorImpl (*fast_import)(object)
cdef int register_fast_import(object cls, fast_import function) except -1
