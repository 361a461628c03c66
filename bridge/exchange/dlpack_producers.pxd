# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef TensorImpl import_by_table(object x, object copy)
cdef TensorImpl import_by_method(object x, object copy, int flags=*, bint on_host=*)
cdef TensorImpl import_capsule_method(object x, object copy)
