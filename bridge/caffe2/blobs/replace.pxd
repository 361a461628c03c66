# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl

cdef int become(TensorImpl impl, TensorImpl fresh) except -1
cdef bint overwrite(TensorImpl impl, TensorImpl source, int64_t most_spare) except -1

cdef enum:
    WORTH_ADOPTING = 1 << 16    # bytes of a result from which on its memory becomes the blob's

cdef int put_result(
    object blob, object result, TensorImpl fresh, bint in_place=*, bint into_buffer=*) except -1
cdef bint same_start(TensorImpl fresh, TensorImpl impl)
