# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport OWN_ORIGIN, TensorImpl, has_origin, impl_flags, origin_of
from bridge.c10.type_meta cimport TypeMeta
from bridge.exchange.torch_layout cimport reads_unchanged

cdef inline object imported_tensor(TensorImpl impl):
    """Return the torch.Tensor that was imported, if a look finds it unchanged; None: torch must be
    asked, by `export_torch`, or it is not the one that goes out.
    """
    if has_origin(impl):
        origin = origin_of(impl)
        # (read last, since `_remember` writes it first)
        if not impl_flags(impl) & OWN_ORIGIN and reads_unchanged(impl, origin):
            return origin
    return None

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
