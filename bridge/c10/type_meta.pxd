# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.dlpack.abi cimport DLDataType

cdef class TypeMeta:
    cdef readonly str name
    cdef readonly int64_t itemsize   # bytes an element takes; 0: undefined
    cdef bint c_is_pod
    cdef DLDataType c_dlpack         # of POD types
    cdef object cls                  # the class of non-POD elements
    cdef object c_numpy              # numpy.dtype once asked for
    cdef object c_torch              # torch.dtype once asked for, False: torch has none
    cdef bint torch_known
    cdef bytes format                # of the buffer protocol; None: it has none

cdef TypeMeta undefined_type
cdef TypeMeta float32_type
cdef TypeMeta uint8_type
cdef TypeMeta string_type
cdef TypeMeta tensor_type
cdef TypeMeta from_dlpack_type(DLDataType dtype)
cpdef TypeMeta as_type(object spec)
