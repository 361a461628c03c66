# SPDX-License-Identifier: Apache-2.0
from bridge.c10.device cimport Device
from bridge.c10.tensor_impl cimport TensorImpl

cpdef TensorImpl to_device(TensorImpl impl, Device device, object copy=*)
cpdef TensorImpl as_cpu_memory(TensorImpl impl)
cdef TensorImpl as_cuda_memory(TensorImpl impl)
