# SPDX-License-Identifier: Apache-2.0
from bridge.caffe2.tensor.tensor cimport Tensor

# The contents of a blob: a tensor, or else an object, or nothing.
cdef class BlobCore:
    cdef public Tensor _tensor      # None: the blob holds no tensor
    cdef public bint _own           # the tensor was created here: arrays may be copied into it
    cdef public object _object      # the contents where there is no tensor
    cdef public object _meta        # the TypeMeta of `_object`; None: the blob holds nothing
    cdef public object _handle      # a weak reference to the blob's BlobTensor, or None
    cdef object __weakref__
