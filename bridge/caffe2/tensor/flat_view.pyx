# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""The elements of a contiguous tensor as a flat view, for ``Tensor.data()`` and its kin."""

cimport cython
from libc.stdint cimport int64_t, uintptr_t

from bridge.c10 cimport allocation, views
from bridge.c10.python_api cimport lock_object, unlock_object
from bridge.c10.storage cimport Elements, Storage, install, owner_of
from bridge.c10.tensor_impl cimport (
    TensorImpl,
    device_type_of,
    dtype_of,
    former,
    numel_of,
    offset_of,
    origin_of,
    seen,
    set_dtype,
    set_offset,
    storage_of,
)
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.numpy cimport flat_array

from bridge.at.tensor import Tensor as AtTensor
from bridge.c10.element_view import ElementView
from bridge.c10.tensor_impl import detached


cdef object flat_view(TensorImpl impl, bint writable, str caller):
    """Return the elements, shared: a NumPy array, an ElementView of non-POD elements, or, where
    NumPy lacks the device or the type, an at.Tensor.
    """
    cdef int64_t n
    impl = seen(impl)
    n = impl.c_numel
    if not impl.c_dtype.c_is_pod:
        impl.data(caller)
        if n == 0:
            return ElementView([], impl.c_dtype, 0, 0)
        items = (<Elements?>owner_of(storage_of(impl))).items
        return ElementView(items, impl.c_dtype, impl.offset, n)
    if device_type_of(impl) == DL_CPU and impl.c_dtype.numpy is not None:
        return flat_array(impl, writable, caller)
    impl.data(caller)
    # Detached: a Storage of its own, which does not count as sharing the tensor's.
    return AtTensor._wrap(detached(views.view(impl, &n, 1, caller)))


cdef object mutable_view(TensorImpl impl, object T, bint as_address, str caller):
    """Allocate the elements as type `T`; return `flat_view` of them, or their address.

    If there is no memory for the result, the buffer is as it was before.
    """
    cdef TypeMeta dtype = <TypeMeta>dtype_of(impl)
    cdef TypeMeta wanted = dtype if T is None else as_type(T)
    cdef Storage storage = storage_of(impl)
    cdef TypeMeta storage_dtype
    cdef int64_t nbytes, offset
    cdef char* data
    cdef int flags
    if storage is None:
        impl.require_defined(caller)
    lock_object(storage)
    ctx, data, storage_dtype = storage.ctx, storage.data, storage.c_dtype
    nbytes, flags = storage.c_nbytes, storage.flags
    unlock_object()
    origin, offset = origin_of(impl), offset_of(impl)
    allocation.mutable_data(impl, wanted, caller)
    try:
        if as_address:
            return <uintptr_t>impl.data(caller) if numel_of(impl) else 0
        return flat_view(impl, True, caller)
    except MemoryError:
        with cython.critical_section(impl):
            _former = former(impl)      # released on return
            set_dtype(impl, dtype)
            set_offset(impl, offset)
            impl.origin = origin
        install(storage, ctx, data, storage_dtype, nbytes, flags)
        raise
