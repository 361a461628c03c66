# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Steps that conversions to every framework share: import the source, copy what does not fit."""

from libc.stdint cimport int64_t, uintptr_t

from bridge.c10.copy cimport reported_copy, requested_copy
from bridge.c10.handle cimport Handle
from bridge.c10.tensor_impl cimport (
    TensorImpl,
    device_type_of,
    is_contiguous_now,
    is_pod_now,
    numel_of,
)
from bridge.dlpack.abi cimport DL_CUDA_HOST
from bridge.exchange.device_memory cimport as_cpu_memory
from bridge.exchange.import_tensor cimport import_tensor, is_new


cpdef TensorImpl export_source(object x, object copy: bool | None):
    """Return the TensorImpl to export for `x`: a wrapper's own, or one that shares its memory.

    Page-locked memory becomes the CPU's, which it is as well: not all frameworks know it.
    A copy that ``copy=True`` asks for is left to the caller; see `remaining_copy`.

    Raises BufferError: `x` is undefined, cannot be imported, or not without a copy and `copy`
    is False.
    """
    cdef TensorImpl impl
    if isinstance(x, Handle):
        impl = (<Handle>x).impl
        impl.require_defined("convert")
    else:
        impl = import_tensor(x, None, False if copy is False else None)
    return as_cpu_memory(impl) if device_type_of(impl) == DL_CUDA_HOST else impl


cpdef object remaining_copy(
    object x, TensorImpl impl, object copy: bool | None
):  # pyi: bool | None
    """Return `copy` as it still applies to `impl`, the imported `x`.

    None instead of True if the import copied already, so that the memory is new.
    """
    return None if copy is True and is_new(x, impl) else copy


cpdef TensorImpl row_major(TensorImpl impl, object copy: bool | None, int64_t alignment=1):
    """Return `impl` if it is row-major and aligned to `alignment` bytes, else a copy that is.

    ``copy=True`` always copies. Raises BufferError: a copy is needed and `copy` is False.
    """
    if not is_pod_now(impl):
        return impl
    if copy is True:
        return requested_copy(impl, "convert")
    if not is_contiguous_now(impl):
        return reported_copy(
            impl, f"its strides {impl.strides().vec()} are not row-major, as the framework's are",
            "convert", copy)
    if numel_of(impl) == 0 or <uintptr_t>impl.data("convert") % <uintptr_t>alignment == 0:
        return impl
    return reported_copy(
        impl, f"it is not aligned to {alignment} bytes, as the framework's memory is", "convert",
        copy)
