# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef int require_pod(TensorImpl impl, str caller) except -1
cdef int zero_elements(TensorImpl dst) except -1
cdef TensorImpl source_of(object value, TensorImpl like_this, str caller)
