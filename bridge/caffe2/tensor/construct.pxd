# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef TensorImpl from_arguments(tuple args, object T)
cdef TensorImpl unallocated(int device_type, int device_index)
