# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef int fill_buffer(TensorImpl impl, object exporter, Py_buffer* buffer, int flags) except -1
cdef void release_buffer(Py_buffer* buffer) noexcept
