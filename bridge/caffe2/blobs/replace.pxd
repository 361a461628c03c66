# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl

cdef int become(TensorImpl impl, TensorImpl fresh) except -1
cdef bint overwrite(TensorImpl impl, TensorImpl source, int64_t most_spare) except -1
