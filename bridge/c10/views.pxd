# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl

# Each returns a new TensorImpl over the same Storage.
cdef TensorImpl alias(TensorImpl self, str caller)
cdef TensorImpl as_strided(
    TensorImpl self, const int64_t* sizes, const int64_t* strides, int ndim, int64_t offset,
    str caller)
cdef TensorImpl view(TensorImpl self, const int64_t* sizes, int ndim, str caller)
cdef TensorImpl transpose(TensorImpl self, int64_t dim0, int64_t dim1, str caller)
cdef TensorImpl permute(TensorImpl self, const int64_t* order, int n, str caller)
cdef TensorImpl select(TensorImpl self, int64_t dim, int64_t index, str caller)
cdef TensorImpl slice_dim(
    TensorImpl self, int64_t dim, int64_t start, int64_t length, int64_t step, str caller)
cdef TensorImpl squeeze(TensorImpl self, int64_t dim, bint every, str caller)
cdef TensorImpl unsqueeze(TensorImpl self, int64_t dim, str caller)
cdef TensorImpl expand(TensorImpl self, const int64_t* sizes, int ndim, str caller)
cdef TensorImpl flatten(TensorImpl self, int64_t start, int64_t end, str caller)
cdef TensorImpl diagonal(TensorImpl self, int64_t offset, int64_t dim1, int64_t dim2, str caller)
cdef TensorImpl unfold(TensorImpl self, int64_t dim, int64_t size, int64_t step, str caller)
