# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.storage cimport Storage
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta
from bridge.caffe2.blobs.core cimport BlobCore
from bridge.caffe2.tensor.tensor cimport Tensor

# What a blob held, and how it was, before an operator had it as an output.
cdef class Held:
    cdef BlobCore blob
    cdef Tensor tensor
    cdef bint own
    cdef object object
    cdef object meta
    cdef TensorImpl impl        # None: there was no tensor, or an undefined one
    cdef TypeMeta dtype
    cdef object origin
    cdef int64_t offset
    cdef object sizes
    cdef int flags
    cdef Storage storage
    cdef char* data
    cdef int64_t nbytes
    cdef object ctx
    cdef TypeMeta storage_dtype
    cdef int storage_flags
    cdef object content         # a copy of the elements, or None: nobody writes them early
    cdef int64_t number         # one that is remembered later has a greater one

    cdef int put_back(self) except -1

cdef Held hold(BlobCore blob, bint writes_last)
cdef int restore(list held) except -1
