# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.storage cimport Storage
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta
from bridge.caffe2.blobs.core cimport BlobCore
from bridge.caffe2.tensor.tensor cimport Tensor

# The value of a blob, with its metadata, before an operator used it as an output.
cdef class OutputBackup:
    cdef BlobCore blob
    cdef Tensor tensor
    cdef bint own
    cdef object object
    cdef object meta
    cdef TensorImpl impl        # None: no tensor, or an undefined one
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
    cdef object content         # a copy of the elements, or None
    cdef int64_t number         # increases with time

    cdef int restore(self) except -1

cdef OutputBackup back_up(BlobCore blob, bint writes_last)
cdef int restore_all(list backups) except -1
