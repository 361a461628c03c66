# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef TensorImpl fast_import_buffer(object x)
cdef TensorImpl import_buffer(object x, object copy)
