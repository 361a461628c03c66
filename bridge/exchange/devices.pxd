# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cpdef TensorImpl on_host(TensorImpl impl)
