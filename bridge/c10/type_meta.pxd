# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.dlpack.abi cimport DLDataType

cdef class TypeMeta:
    cdef readonly str name  # pyi: builtins.str
    cdef readonly int64_t itemsize   # bytes an element takes; 0: undefined
    cdef bint c_is_pod
    cdef DLDataType c_dlpack         # of POD types
    cdef object cls                  # the class of non-POD elements; called without arguments
    cdef object copy_element         # copies one non-POD element; None: elements are immutable
    cdef object c_numpy              # numpy.dtype, set at the first use
    cdef object c_torch              # torch.dtype where torch_known; None: torch has no such type
    cdef int torch_known             # a flag of `publish`
    cdef bytes format                # of the buffer protocol; None: it has no such type

cdef TypeMeta undefined_type         # False; of a tensor that has no type yet
cdef TypeMeta float32_type
cdef TypeMeta uint8_type
cdef TypeMeta string_type
cdef TypeMeta tensor_type
cdef TypeMeta from_dlpack_type(DLDataType dtype)
cdef int set_element_class(
    TypeMeta meta, object cls, object copy_element, tuple aliases=*) except -1
cpdef TypeMeta as_type(object spec)
