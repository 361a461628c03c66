# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.storage cimport Storage
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta
from bridge.caffe2.blobs.blob_core cimport BlobCore
from bridge.caffe2.tensor cimport Tensor

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

    cdef int restore(self) except -1

# What an operator's definition says that a run needs; the base of Definition.
cdef class DefinitionCore:
    cdef public tuple inputs            # names
    cdef public tuple outputs
    cdef public object device           # a c10.Device
    cdef int device_type                # DLPack's numbers
    cdef int device_index
    # The class that runs it, as registry.class_for found it, at `generation` of the registry.
    cdef public object cls
    cdef public long generation
    cdef public object checked          # what the class's check gave
    cdef bint plain                     # the class has the framework's own __init__
    cdef bint writes_last

cdef class OperatorCore:
    cdef public DefinitionCore _definition
    cdef public object _workspace
    cdef tuple _inputs                  # of BlobCore
    cdef tuple _outputs
    cdef list _held                     # a Held or None for each output; None: not running

    cdef BlobCore input_blob(self, object i, str caller)
    cdef BlobCore output_blob(self, object i, str caller)

cdef object run(OperatorCore operator)
cdef Tensor output_like(OperatorCore operator, object i, TensorImpl like)
