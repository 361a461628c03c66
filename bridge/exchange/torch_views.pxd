# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from bridge.c10.tensor_impl cimport TensorImpl
from bridge.exchange.torch_layout cimport reads_unchanged

cdef inline bint is_same_tensor(TensorImpl impl, object tensor) except -1:
    """Return whether a torch.Tensor still has the sizes, the type and the memory of `impl`.

    Its owner may have resized it, or given it other memory, another type or a lazy bit.
    """
    return reads_unchanged(impl, <PyObject*>tensor) or is_same_by_torch(impl, tensor)

cdef bint is_same_by_torch(TensorImpl impl, object tensor) except -1
cdef object torch_view(TensorImpl impl, bint inside)
cdef object view_of(TensorImpl impl, object base=*)
cdef object taken_by_torch(TensorImpl impl)
cdef object outgoing_alias(TensorImpl impl, object tensor)
