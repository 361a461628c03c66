# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta
from bridge.caffe2.blobs.core cimport BlobCore
from bridge.caffe2.tensor.tensor cimport Tensor

# The fields of a definition that a run needs; the base of Definition.
cdef class DefinitionCore:
    cdef public tuple inputs            # names
    cdef public tuple outputs  # pyi: tuple[str, ...]
    cdef public object device           # a c10.Device
    cdef int device_type                # DLPack's numbers
    cdef int device_index
    # The class that runs it, which registry.class_for found at `generation` of the registry.
    cdef public object cls
    cdef public long generation
    cdef public object checked          # the result of the class's check
    cdef bint plain                     # the class has Operator's own __init__
    cdef int writes_last                # a flag that `_assign` may set in another thread

cdef class OperatorCore:
    cdef readonly DefinitionCore _definition
    cdef public object _workspace  # pyi: BlobTable
    cdef tuple _inputs                  # of BlobCore
    cdef tuple _outputs
    cdef list _backups                  # an OutputBackup or None per output; None: not running
    cdef int is_busy                    # a thread runs it; the flag of `claim`

    cdef BlobCore input_blob(self, object i, str caller)
    cdef BlobCore output_blob(self, object i, str caller)
    cdef object compute(self)
    cdef bint repeat(self) except -1
    cdef OperatorCore another(self)
    cdef bint is_repeatable(self) noexcept
    cdef bint has_blobs_of(self, dict blobs) except -1

cdef object run(OperatorCore operator)
cdef Tensor output_sized(
    OperatorCore operator, BlobCore blob, const int64_t* sizes, int ndim, TypeMeta dtype)
