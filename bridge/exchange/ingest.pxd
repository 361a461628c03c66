# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef object tristate(object copy)
cdef bint is_new(object x, TensorImpl impl) except -1
cpdef TensorImpl ingest(object x, object device=*, object copy=*)

ctypedef TensorImpl (*bring_quickly)(object)
cdef int bring_quickly_in(object cls, bring_quickly function) except -1
