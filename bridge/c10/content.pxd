# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta

cdef int share_data(TensorImpl self, TensorImpl src, str caller) except -1
cdef int share_external(
    TensorImpl self, object ctx, char* data, TypeMeta dtype, int64_t nbytes, str caller) except -1
cdef int copy_from(TensorImpl self, TensorImpl src, str caller) except -1
