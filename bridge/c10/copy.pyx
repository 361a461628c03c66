# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Copying elements between tensors of the same type and sizes, with any strides and devices."""

from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy, memmove

from bridge.c10.dims cimport Dims, new_dims
from bridge.c10.device cimport host_accessible
from bridge.c10.layout cimport extent
from bridge.c10.python_api cimport FREE_THREADED, RELEASE_GIL_NBYTES
from bridge.c10.reports cimport report_copy
from bridge.c10.storage cimport Elements, owner_of
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, allocatable, allocated, seen

from bridge.c10.errors import EnforceNotMet
from bridge.c10.reports import ASKED as _ASKED

cdef object _device_copy = None


def register_device_copy(function: Callable[[TensorImpl, TensorImpl], object]) -> None:
    """Register ``function(dst, src)``, which copies where one of the two is not in host memory.

    As REGISTER_COPY_BYTES_FUNCTION, c10/core/CopyBytes.h, PyTorch 1.8.1; the adapter of the
    framework that can access the device calls it.
    """
    global _device_copy
    _device_copy = function


cdef void _row(
    char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n, int64_t itemsize,
) noexcept nogil:
    # Steps in bytes. memcpy of a constant size compiles to one load and one store of any alignment.
    cdef int64_t i
    if dst_step == itemsize and src_step == itemsize:
        memcpy(dst, src, n * itemsize)
    elif itemsize == 4:
        for i in range(n):
            memcpy(dst + i * dst_step, src + i * src_step, 4)
    elif itemsize == 8:
        for i in range(n):
            memcpy(dst + i * dst_step, src + i * src_step, 8)
    elif itemsize == 1:
        for i in range(n):
            dst[i * dst_step] = src[i * src_step]
    elif itemsize == 2:
        for i in range(n):
            memcpy(dst + i * dst_step, src + i * src_step, 2)
    else:
        for i in range(n):
            memcpy(dst + i * dst_step, src + i * src_step, itemsize)


cdef void _move(char* dst, const char* src, int64_t nbytes) noexcept nogil:
    """Copy the elements of two row-major tensors: nothing else, for the reports of sanitizers."""
    memmove(dst, src, nbytes)


cdef void copy_strided(
    char* dst, const int64_t* dst_strides, const char* src, const int64_t* src_strides,
    const int64_t* sizes, int ndim, int64_t itemsize,
) noexcept nogil:
    """Copy element by element between memory that does not overlap; strides in elements.

    Recurses once for each dimension of more than one element, of which there are at most 62.
    """
    cdef int64_t i
    cdef int64_t run = 1
    cdef int d
    while ndim > 1 and sizes[0] == 1:
        sizes, dst_strides, src_strides = sizes + 1, dst_strides + 1, src_strides + 1
        ndim -= 1
    d = ndim
    # Treat the trailing dimensions that are contiguous on both sides as one row.
    while d > 0 and (sizes[d - 1] == 1 or (
            dst_strides[d - 1] == run and src_strides[d - 1] == run)):
        run *= sizes[d - 1]
        d -= 1
    if d == 0:
        memcpy(dst, src, run * itemsize)
        return
    if run == 1 and d == 1:
        _row(dst, dst_strides[0] * itemsize, src, src_strides[0] * itemsize, sizes[0], itemsize)
        return
    if d == 1:
        for i in range(sizes[0]):
            memcpy(dst + i * dst_strides[0] * itemsize, src + i * src_strides[0] * itemsize,
                   run * itemsize)
        return
    for i in range(sizes[0]):
        copy_strided(
            dst + i * dst_strides[0] * itemsize, dst_strides + 1,
            src + i * src_strides[0] * itemsize, src_strides + 1,
            sizes + 1, ndim - 1, itemsize)


cdef bint _overlap(TensorImpl a, const char* a_data, TensorImpl b, const char* b_data) noexcept:
    """Return whether the ranges of addresses of two tensors overlap."""
    cdef int64_t a_low, a_high, b_low, b_high
    cdef int64_t size = a.c_dtype.itemsize
    extent(a.c_sizes, a.c_strides(), a.ndim, &a_low, &a_high)
    extent(b.c_sizes, b.c_strides(), b.ndim, &b_low, &b_high)
    return (a_data + a_low * size < b_data + (b_high + 1) * size
            and b_data + b_low * size < a_data + (a_high + 1) * size)


cdef int require_alike(TensorImpl dst, TensorImpl src, str caller) except -1:
    """Raise EnforceNotMet unless both tensors have the same type and sizes.

    The caller has created them so, but an allocator or the constructor of an element may have run
    Python since then.
    """
    if dst.c_dtype is not src.c_dtype or dst.ndim != src.ndim or memcmp(
            dst.c_sizes, src.c_sizes, src.ndim * sizeof(int64_t)) != 0:
        raise EnforceNotMet(
            "The tensor was given another type or other sizes while it was being copied.", caller,
            condition="dst.sizes() == src.sizes()")
    return 0


cdef int copy_elements(TensorImpl dst, TensorImpl src, str caller) except -1:
    """Copy the elements of `src` into `dst`, which has the same type and sizes.

    Overlapping memory is copied as if all elements were read before any is written.

    Raises EnforceNotMet: a tensor is undefined or has no memory, changes while it is being copied,
    or is on a device for which no copy function is registered.
    """
    cdef char* to
    cdef char* source
    cdef int64_t nbytes, itemsize, begin
    cdef int ndim
    cdef list places
    cdef Dims layout
    cdef TensorImpl whole
    src, dst = seen(src), seen(dst)
    ndim = src.ndim
    src.require_defined(caller)
    dst.require_defined(caller)
    # While the GIL is released, here or by a framework that checks its memory, another thread may
    # replace the buffers of the storages, and the tensors other sizes.
    while True:
        _keep_dst, _keep_src = owner_of(dst.storage), owner_of(src.storage)
        source = src.data(caller)
        to = dst.data(caller)
        require_alike(dst, src, caller)
        if owner_of(dst.storage) is _keep_dst and owner_of(src.storage) is _keep_src:
            break
        if not FREE_THREADED:
            raise EnforceNotMet(
                "The memory of the tensor was replaced while it was being copied.", caller,
                condition="storage() is kept")
    if src.c_numel == 0:
        return 0
    if not src.c_dtype.c_is_pod:
        # Copying an element runs Python, which may replace the buffers of the storages.
        places, begin = (<Elements?>_keep_dst).items, dst.offset
        items = (<Elements?>_keep_src).items[src.offset:src.offset + src.c_numel]
        copy_element = src.c_dtype.copy_element
        if copy_element is not None:
            items = [copy_element(item) for item in items]
        places[begin:begin + len(items)] = items
        return 0
    if not (host_accessible(dst.storage.device_type)
            and host_accessible(src.storage.device_type)):
        device_copy = _device_copy
        if device_copy is None:
            raise EnforceNotMet(
                f"Copying from {src.device()} to {dst.device()} needs torch, which is not loaded.",
                caller)
        if dst.storage.device_type == src.storage.device_type and _overlap(dst, to, src, source):
            src = contiguous_copy(src, caller)
        device_copy(dst, src)
        return 0
    nbytes = src.c_numel * src.c_dtype.itemsize
    if dst.flags & CONTIGUOUS and src.flags & CONTIGUOUS:
        if nbytes < RELEASE_GIL_NBYTES:
            _move(to, source, nbytes)
        else:
            with nogil:
                _move(to, source, nbytes)
        return 0
    if _overlap(dst, to, src, source):
        whole = contiguous_copy(src, caller)
        return copy_elements(dst, whole, caller)
    itemsize = src.c_dtype.itemsize
    layout = new_dims(3 * ndim)
    memcpy(layout.data, src.c_sizes, 2 * ndim * sizeof(int64_t))     # sizes and strides
    memcpy(layout.data + 2 * ndim, dst.c_strides(), ndim * sizeof(int64_t))
    with nogil:
        copy_strided(
            to, layout.data + 2 * ndim, source, layout.data + ndim, layout.data, ndim, itemsize)
    return 0


cdef TensorImpl contiguous_copy(TensorImpl src, str caller):
    """Return a new row-major tensor with the elements of `src`, on the same device.

    CUDA memory if `src` is in managed memory.
    """
    cdef TensorImpl out, now = seen(src)
    now.data(caller)
    out = allocated(now.c_sizes, now.ndim, now.c_dtype, allocatable(now.storage.device_type),
                    now.storage.device_index, caller)
    copy_elements(out, src, caller)     # which refuses it if it has other sizes by now
    return out


cpdef int require_copy(object copy: bool | None, int64_t nbytes, str reason) except -1:
    """Report that the conversion under way will copy, since `reason`, a clause with the values.

    Raises BufferError: `copy` is False, or inside no_copy().
    """
    if copy is False:
        raise BufferError(f"It cannot be shared: {reason}. Allow a copy with copy=None.")
    return report_copy(nbytes, reason)


cpdef TensorImpl reported_copy(
    TensorImpl src, str reason, str caller, object copy: bool | None = None
):
    """Return a contiguous copy in a conversion, reported with `reason`.

    Raises BufferError: `copy` is False, or inside no_copy().
    """
    cdef TensorImpl now = seen(src)
    require_copy(copy, now.c_numel * now.c_dtype.itemsize, reason)
    return contiguous_copy(src, caller)


cdef TensorImpl requested_copy(TensorImpl src, str caller):
    """Return a contiguous copy in a conversion that was called with copy=True."""
    return reported_copy(src, _ASKED, caller)
