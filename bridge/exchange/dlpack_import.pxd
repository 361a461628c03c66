# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.dlpack.abi cimport DLTensor
from bridge.dlpack.capsule cimport ManagedTensor

cdef TensorImpl adopt(
    DLTensor* tensor, object ctx, int storage_flags, bint padded, object copy)
cdef TensorImpl adopt_managed(ManagedTensor managed, int storage_flags, object copy)
