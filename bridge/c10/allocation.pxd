# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.storage cimport Storage
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta

cdef int mutable_data(TensorImpl self, TypeMeta dtype, str caller) except -1
cdef int free_memory(TensorImpl self, str caller) except -1

cdef int require_contiguous(TensorImpl self, str caller) except -1
cdef int require_allocator(Storage storage) except -1
cdef int require_type(TypeMeta dtype, str caller) except -1
cdef int64_t nbytes_needed(TensorImpl self, int64_t numel, str caller) except -1
cdef int64_t max_idle_nbytes() except? -1
cdef bint same_kind(TensorImpl self) noexcept
cdef bint keeps_buffer(TensorImpl self, int64_t numel)
