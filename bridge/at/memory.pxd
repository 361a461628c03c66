# SPDX-License-Identifier: Apache-2.0
from bridge.c10.dims cimport Dims
from bridge.c10.tensor_impl cimport TensorImpl

cdef TensorImpl as_other_type(TensorImpl impl, object spec)
cdef int resize(TensorImpl impl, Dims dims) except -1
cdef int look_at(
    TensorImpl impl, object source, object storage_offset, object size, object stride,
) except -1
