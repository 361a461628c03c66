# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl

cpdef TensorImpl export_source(object x, object copy)
cpdef object remaining_copy(object x, TensorImpl impl, object copy)
cpdef TensorImpl row_major(TensorImpl impl, object copy, int64_t alignment=*)
