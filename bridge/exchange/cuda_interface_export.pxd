# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef dict export_cuda_interface(TensorImpl exported)
