# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Sharing memory from outside with a tensor, and the checks of that memory."""

from libc.stdint cimport INT64_MAX, int64_t, uintptr_t

from bridge.c10 cimport content
from bridge.c10.retained cimport retained_owner
from bridge.c10.storage cimport READONLY, external_ptr
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    device_type_of,
    numel_of,
    seen,
    storage_flags,
)
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.exchange.import_tensor cimport import_tensor

from bridge.c10.errors import (
    EnforceBufferError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)
from bridge.c10.storage import as_address, as_deleter, as_nbytes


def share_external_pointer(
    TensorImpl impl not None,
    src: int | TensorLike,
    T: TypeLike | None,
    nbytes: int,
    deleter: Deleter | None,
) -> None:
    """Do as `Tensor.ShareExternalPointer`, for the tensor of `impl`."""
    caller = "Tensor.ShareExternalPointer"
    cdef TypeMeta dtype = None if T is None else as_type(T)
    cdef TensorImpl lender
    cdef char* data
    cdef int64_t capacity, available = INT64_MAX
    cdef uintptr_t address
    impl.require_defined(caller)
    keep = None
    deleter = as_deleter(deleter, caller)
    capacity = as_nbytes(nbytes, caller)
    if isinstance(src, int) and not isinstance(src, bool):
        if dtype is None:
            raise EnforceTypeError(
                "An address does not specify the element type; pass T.", caller,
                condition="T is not None")
        address = as_address(src, caller)
    else:
        try:
            lender = seen(import_tensor(src, None, False))
        except (BufferError, TypeError) as error:
            raise EnforceTypeError(
                f"{type(src).__name__} does not share memory: {error}", caller) from error
        if storage_flags(lender) & READONLY:
            raise EnforceBufferError(
                "The buffer is read-only, and a caffe2.Tensor is written to. Copy it with "
                "CopyFrom.", caller, condition="!readonly")
        if not lender.flags & CONTIGUOUS:
            raise EnforceBufferError(
                "The buffer is not contiguous.", caller, condition="is_contiguous()")
        if device_type_of(lender) != device_type_of(impl):
            raise EnforceBufferError(
                f"The memory is on {lender.device()} and the tensor on {impl.device()}.",
                caller)
        if dtype is None:
            dtype = lender.c_dtype
        available = lender.c_numel * lender.c_dtype.itemsize
        keep = retained_owner(lender, &data, caller)
        address = <uintptr_t>data
    if not dtype.c_is_pod:
        raise EnforceNotMet(
            f"Memory from outside has POD elements, not {dtype}.", caller, condition="T.is_pod")
    numel = numel_of(impl)
    needed = numel * dtype.itemsize
    if capacity == 0:
        capacity = min(needed, INT64_MAX)
    if needed > capacity or capacity > available:
        raise EnforceValueError(
            f"The tensor's {numel} elements of {dtype} take {needed} bytes, the capacity "
            f"is {capacity}" +
            (f", and the buffer has {available}." if available != INT64_MAX else "."), caller,
            condition="numel() * itemsize <= nbytes")
    if address % <uintptr_t>min(dtype.itemsize, 8) != 0:
        raise EnforceValueError(
            f"The address {address:#x} is not aligned for {dtype}.", caller)
    content.share_external(
        impl, external_ptr(<void*>address, keep, deleter), <char*>address, dtype, capacity,
        caller)
