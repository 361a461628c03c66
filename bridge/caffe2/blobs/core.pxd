# SPDX-License-Identifier: Apache-2.0
from bridge.caffe2.tensor.tensor cimport Tensor

# What a blob holds, for the functions that are called most.
cdef class BlobCore:
    cdef public Tensor _tensor      # None: no tensor
    cdef public bint _own           # the tensor was made here: NumPy may be copied into it
    cdef public object _object      # what is held where there is no tensor
    cdef public object _meta        # its TypeMeta; None: nothing is held
    cdef public object _handle      # a weak reference to the BlobTensor, or None
    cdef object __weakref__

cpdef put(BlobCore blob, object value)
