# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cpdef TensorImpl import_arrow(object x, object copy=*)
cdef str arrow_method(object x)
