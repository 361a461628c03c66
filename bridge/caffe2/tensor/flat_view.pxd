# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef object flat_view(TensorImpl impl, bint writable, str caller)
cdef object mutable_view(TensorImpl impl, object T, bint as_address, str caller)
