# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef object arrow_schema(TensorImpl impl)
cdef tuple arrow_array(TensorImpl impl, object requested)
cdef tuple arrow_device_array(TensorImpl impl, object requested)
