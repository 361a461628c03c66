# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyTypeObject

from bridge.c10.tensor_impl cimport TensorImpl

cdef PyTypeObject* torch_tensor_type    # torch.Tensor once torch was met, before that NULL
cdef PyTypeObject* torch_parameter_type
cdef bint meet_torch() except -1
cdef TensorImpl tensor_in(object tensor, object copy)
cpdef TensorImpl any_tensor_in(object tensor, object copy=*)
cpdef object tensor_out(TensorImpl impl, object copy=*, bint writable=*)
cdef TensorImpl for_asker(TensorImpl impl, object copy)
cdef object cloned(object tensor)
cpdef object operand_out(TensorImpl impl)
cdef object forward_out(TensorImpl impl)
cdef bint torch_asks() except -1
cpdef bint is_torch_tensor(object x)
