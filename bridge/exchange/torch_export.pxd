# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from bridge.c10.handle cimport Handle
from bridge.c10.python_api cimport FREE_THREADED
from bridge.c10.tensor_impl cimport OWN_ORIGIN, TensorImpl
from bridge.c10.type_meta cimport TypeMeta
from bridge.exchange.torch_layout cimport reads_unchanged

cdef inline PyObject* imported_tensor(Handle handle) noexcept:
    """Return the torch.Tensor that was imported, borrowed, if a look finds it unchanged; NULL:
    torch must be asked, by `export_torch`, or it is not the one that goes out.
    """
    # Without the GIL, where other threads may change both, no look finds anything.
    if FREE_THREADED or handle.impl.flags & OWN_ORIGIN \
            or not reads_unchanged(handle.impl, <PyObject*>handle.impl.origin):
        return NULL
    return <PyObject*>handle.impl.origin

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
