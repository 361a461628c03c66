# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Copying elements between tensors of one type and size, over any strides and devices."""

from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy, memmove

from bridge.c10.array_ref cimport Dims, new_dims
from bridge.c10.device cimport host_accessible
from bridge.c10.layout cimport extent
from bridge.c10.observe cimport copying
from bridge.c10.storage cimport Elements
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, allocated

from bridge.c10.errors import EnforceNotMet
from bridge.c10.observe import ASKED as _ASKED
from bridge.c10.storage import copied_items

# Set by the adapter that can reach memory which the CPU cannot: f(dst, src).
cdef object _device_copier = None


def set_device_copier(copier):
    """Let `copier(dst, src)` copy between TensorImpls that are not both in host memory."""
    global _device_copier
    _device_copier = copier


cdef void _row(
    char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n, int64_t itemsize,
) noexcept nogil:
    # Steps in bytes. memcpy of a constant size compiles to one load and one store,
    # of any alignment.
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


cdef void copy_strided(
    char* dst, const int64_t* dst_strides, const char* src, const int64_t* src_strides,
    const int64_t* sizes, int ndim, int64_t itemsize,
) noexcept nogil:
    """Copy element by element; strides in elements. dst and src do not overlap.

    Calls itself once for each dimension of more than one element, of which there are 62 at most.
    """
    cdef int64_t i
    cdef int64_t run = 1
    cdef int d
    while ndim > 1 and sizes[0] == 1:
        sizes, dst_strides, src_strides = sizes + 1, dst_strides + 1, src_strides + 1
        ndim -= 1
    d = ndim
    # The trailing dimensions that are contiguous on both sides are one row.
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
    cdef int64_t a_low, a_high, b_low, b_high
    cdef int64_t size = a.c_dtype.itemsize
    extent(a.c_sizes, a.c_strides(), a.ndim, &a_low, &a_high)
    extent(b.c_sizes, b.c_strides(), b.ndim, &b_low, &b_high)
    return (a_data + a_low * size < b_data + (b_high + 1) * size
            and b_data + b_low * size < a_data + (a_high + 1) * size)


cdef int require_alike(TensorImpl dst, TensorImpl src, str caller) except -1:
    """Refuse tensors of different type or sizes.

    Whoever copies made them alike, but an allocator, or the constructor of an element, may have
    run Python since then.
    """
    if dst.c_dtype is not src.c_dtype or dst.ndim != src.ndim or memcmp(
            dst.c_sizes, src.c_sizes, src.ndim * sizeof(int64_t)) != 0:
        raise EnforceNotMet(
            "The tensor was given another type or other sizes while it was copied.", caller,
            condition="dst.sizes() == src.sizes()")
    return 0


cdef int copy_elements(TensorImpl dst, TensorImpl src, str caller) except -1:
    """Copy the elements of `src` into `dst`, of the same type and sizes.

    Overlapping memory is copied as if all were read before anything is written.
    """
    cdef char* to
    cdef char* source
    cdef int64_t nbytes, itemsize, begin
    cdef int ndim = src.ndim
    cdef list places
    cdef Dims layout
    cdef TensorImpl whole
    src.require_defined(caller)
    dst.require_defined(caller)
    # While the GIL is released, here or by a framework that is asked whether its memory is still
    # there, another thread may give the storages other buffers, and the tensors other sizes.
    _keep_dst, _keep_src = dst.storage.ctx, src.storage.ctx
    source = src.data(caller)
    to = dst.data(caller)
    require_alike(dst, src, caller)
    if dst.storage.ctx is not _keep_dst or src.storage.ctx is not _keep_src:
        raise EnforceNotMet(
            "The tensor was given other memory while it was copied.", caller, condition="storage() is kept")
    if src.c_numel == 0:
        return 0
    if not src.c_dtype.c_is_pod:
        # Copying an element runs Python, which may give the storages other buffers.
        places, begin = (<Elements>dst.storage.ctx).items, dst.offset
        items = copied_items(
            (<Elements>src.storage.ctx).items[src.offset:src.offset + src.c_numel], src.c_dtype)
        places[begin:begin + len(items)] = items
        return 0
    if not (host_accessible(dst.storage.device_type)
            and host_accessible(src.storage.device_type)):
        copier = _device_copier
        if copier is None:
            raise EnforceNotMet(
                f"Nothing here copies from {src.device()} to {dst.device()}; that needs torch.", caller)
        if dst.storage.device_type == src.storage.device_type and _overlap(dst, to, src, source):
            src = contiguous_copy(src, caller)
        copier(dst, src)
        return 0
    nbytes = src.c_numel * src.c_dtype.itemsize
    if dst.flags & CONTIGUOUS and src.flags & CONTIGUOUS:
        if nbytes < 65536:
            memmove(to, source, nbytes)
        else:
            with nogil:
                memmove(to, source, nbytes)
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
    """A new row-major tensor with the elements of `src`, on the same device."""
    cdef TensorImpl out
    src.data(caller)
    out = allocated(src.c_sizes, src.ndim, src.c_dtype, src.storage.device_type,
                    src.storage.device_index, caller)
    copy_elements(out, src, caller)
    return out


cpdef TensorImpl copied_since(TensorImpl src, str reason, str caller):
    """The same in a conversion, which has to copy for `reason`. BufferError inside no_copy()."""
    copying(src.c_numel * src.c_dtype.itemsize, reason)
    return contiguous_copy(src, caller)


cdef TensorImpl asked_copy(TensorImpl src, str caller):
    """The same in a conversion whose caller says copy=True."""
    return copied_since(src, _ASKED, caller)
