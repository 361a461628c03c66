# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.caffe2.tensor.metadata cimport TensorMetadata

cdef class Tensor(TensorMetadata):
    pass

cdef Tensor wrap(TensorImpl impl)
