# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl

cdef TensorImpl shared_in(object x, object copy)
cpdef TensorImpl to_lend(object x, object copy)
cpdef object left_to_copy(object x, TensorImpl impl, object copy)
cpdef TensorImpl row_major(TensorImpl impl, object copy, int64_t alignment=*)
cpdef object lent_capsule(TensorImpl impl, object stream=*)
