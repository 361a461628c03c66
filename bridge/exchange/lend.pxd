# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl

cpdef TensorImpl row_major(object x, object copy, int64_t alignment=*)
cpdef object lent_capsule(TensorImpl impl, object stream=*)
