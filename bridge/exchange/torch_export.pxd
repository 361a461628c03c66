# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta

cpdef object export_torch(TensorImpl impl, object copy=*, bint writable=*)
cdef object export_torch_once(TensorImpl impl, object copy, bint writable)
cpdef object torch_operand(TensorImpl impl)
cpdef object resized_operand(TensorImpl impl)
cdef object forward_operand(TensorImpl impl)
cdef bint torch_computes(TypeMeta dtype) except -1
cdef TensorImpl as_bits(TensorImpl impl)
cdef TensorImpl each_once(TensorImpl impl)
cdef TensorImpl fit_for_torch(
    TensorImpl impl, object copy, bint writable, str library=*, bint forward=*)
cdef bint has_negative_strides(TensorImpl impl) noexcept
