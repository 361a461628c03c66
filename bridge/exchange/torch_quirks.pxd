# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef TensorImpl fit_for_consumer(TensorImpl impl, object copy)
cdef bint torch_is_consumer() except -1
