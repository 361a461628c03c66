# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cpdef object arrow_schema(TensorImpl impl)
cpdef tuple arrow_array(TensorImpl impl, object requested)
cpdef tuple arrow_device_array(TensorImpl impl, object requested)
