# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta

cdef int require_pod(TensorImpl impl, str caller) except -1
cdef TensorImpl scalar(object value, TypeMeta dtype, str caller)
cdef TensorImpl converted(TensorImpl src, TypeMeta dtype, str caller)
cdef TensorImpl as_source(object value, TensorImpl target, str caller)
cdef TensorImpl convert_to(
    TensorImpl impl, tuple args, bint copy, object dtype, object device, object other)
cdef TensorImpl view_as_dtype(TensorImpl impl, object spec)
