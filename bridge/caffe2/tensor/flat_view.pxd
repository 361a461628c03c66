# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef object flat_view(TensorImpl impl, bint writable, str caller)
