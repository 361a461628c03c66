# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef int become(TensorImpl impl, TensorImpl fresh) except -1
