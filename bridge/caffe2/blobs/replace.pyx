# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""New contents of a tensor in one step, between which no other thread sees the tensor.

Nothing here runs Python between the first change of the tensor and the last, so with the GIL no
other thread runs; without it the tensor is locked. The old memory of the tensor is released last.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memmove

from bridge.c10 cimport resizing
from bridge.c10.copy cimport contiguous_copy
from bridge.c10.python_api cimport RELEASE_GIL_NBYTES
from bridge.c10.storage cimport (
    BORROWED,
    EXTERNAL,
    READONLY,
    UNVERIFIED,
    Storage,
    begin_of,
    set_flags,
)
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    OWN_ORIGIN,
    RESERVED,
    TensorImpl,
    device_index_of,
    device_type_of,
    former,
    has_memory,
    has_sizes,
    is_undefined,
    seen,
    set_dtype,
    set_impl_flags,
    set_offset,
    storage_flags,
    storage_of,
)
from bridge.caffe2.blobs.core cimport BlobCore, hold_tensor, tensor_of
from bridge.caffe2.tensor.tensor cimport Tensor, wrap
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.numpy cimport import_array
from bridge.exchange.torch_export cimport torch_operand

from bridge.c10.resize_flags import FLAGS


def copy_array(Tensor tensor not None, array: Any) -> None:
    """Copy a NumPy array of numbers into the tensor, which gets its sizes and type.

    The tensor keeps its buffer if that is the bridge's own, of the same type and large enough, and
    not much larger than `FLAGS` allow. Raises MemoryError; the tensor is then unchanged.
    """
    cdef TensorImpl source = import_array(array, None)
    cdef int64_t spare = (
        FLAGS.caffe2_max_keep_on_shrink_memory if FLAGS.caffe2_keep_on_shrink else -1)
    if not source.flags & CONTIGUOUS:
        source = contiguous_copy(source, "FeedBlob")
    if not overwrite(tensor.impl, source, spare):
        become(tensor.impl, contiguous_copy(source, "FeedBlob"))


cdef bint overwrite(TensorImpl impl, TensorImpl source, int64_t most_spare) except -1:
    """Copy `source`, contiguous numbers in host memory, into the buffer of `impl`, which gets its
    sizes.

    Return False, and do nothing, if the buffer is not the bridge's own, of another type or too
    small; or if the number of elements is another and more than `most_spare` bytes would be left.
    """
    cdef Storage storage
    while True:
        storage = storage_of(impl)
        if storage is None:
            return False
        # both at once: a second section that has to wait gives up the first
        with cython.critical_section(impl, storage):
            if impl.storage is storage:
                # released on return
                _former = None if _has_sizes_of(impl, source) else former(impl)
                return _overwrite_locked(impl, storage, source, most_spare)


cdef inline bint _has_sizes_of(TensorImpl impl, TensorImpl source) noexcept:
    """Return whether nothing of the metadata changes, so that torch's tensor of it stays valid."""
    return impl.flags & CONTIGUOUS and impl.ndim == source.ndim \
        and memcmp(impl.c_sizes, source.c_sizes, impl.ndim * sizeof(int64_t)) == 0


cdef bint _overwrite_locked(
    TensorImpl impl, Storage storage, TensorImpl source, int64_t most_spare,
) except -1:
    cdef int64_t nbytes = source.c_numel * source.c_dtype.itemsize
    cdef int64_t begin, spare
    cdef char* data
    cdef bint fits = _has_sizes_of(impl, source)
    if storage.data == NULL or storage.flags & (EXTERNAL | READONLY | BORROWED) \
            or storage.device_type != DL_CPU or impl.c_dtype is not source.c_dtype \
            or storage.c_dtype is not source.c_dtype:
        return False
    begin = impl.offset * impl.c_dtype.itemsize
    spare = storage.c_nbytes - begin - nbytes
    if spare < 0 or (source.c_numel != impl.c_numel and spare > most_spare):
        return False
    if not fits:
        impl.set_contiguous(source.c_sizes, source.ndim, source.c_numel)
    data = storage.data + begin
    if fits and nbytes > RELEASE_GIL_NBYTES:    # new sizes and elements come in one step
        _keep = storage.ctx     # another thread may replace the buffer while the GIL is released
        with nogil:
            memmove(data, source.storage.data, nbytes)
    elif nbytes:
        memmove(data, source.storage.data, nbytes)
    return True


def adopt(Tensor tensor not None, Tensor fresh not None) -> None:
    """Set the tensor to the sizes, type and memory of `fresh`, new, which they then share."""
    become(tensor.impl, fresh.impl)


cdef int become(TensorImpl impl, TensorImpl fresh) except -1:
    """Set `impl` to the sizes, the type and the memory of `fresh`, which they then share.

    Raises MemoryError: no room for the sizes; `impl` is then unchanged.
    """
    with cython.critical_section(impl):
        _storage, _origin, _sizes = impl.storage, impl.origin, impl.sizes_ref
        impl.set_contiguous(fresh.c_sizes, fresh.ndim, fresh.c_numel)
        impl.set_storage(fresh.storage)
        set_dtype(impl, fresh.c_dtype)
        set_offset(impl, fresh.offset)
        impl.origin = fresh.origin
        set_impl_flags(
            impl, (impl.flags & ~(OWN_ORIGIN | RESERVED)) | (fresh.flags & OWN_ORIGIN))
    return 0


cdef int put_result(
    object blob, object result, TensorImpl fresh, bint in_place=False, bint into_buffer=False,
) except -1:
    """Set a blob to `result`, a new contiguous torch tensor, which `fresh` describes.

    The elements are copied into the blob's own memory if the blob is an input as well (`in_place`),
    so that others who share that memory see them; and if its tensor has their type and sizes and
    they are few, or it is to stay as it is (`into_buffer`). Otherwise the memory of the result
    becomes the blob's.
    """
    cdef BlobCore target = <BlobCore?>blob
    cdef Tensor tensor = tensor_of(target)
    cdef TensorImpl impl
    cdef char* data
    cdef int64_t nbytes = fresh.c_numel * fresh.c_dtype.itemsize
    cdef bint fits = tensor is not None and not is_undefined(tensor.impl) \
        and not storage_flags(tensor.impl) & READONLY \
        and device_type_of(tensor.impl) == device_type_of(fresh) \
        and device_index_of(tensor.impl) == device_index_of(fresh)
    cdef bint same
    if fits:
        impl = seen(tensor.impl)
        if has_memory(impl) and impl.c_dtype is fresh.c_dtype and impl.flags & CONTIGUOUS:
            same = has_sizes(impl, fresh.c_sizes, fresh.ndim)
            if in_place and impl.c_numel == fresh.c_numel:
                if not same:
                    resizing.reshape(tensor.impl, fresh.c_sizes, fresh.ndim, "Operator.Output")
                if not same_start(fresh, impl):
                    torch_operand(tensor.impl).copy_(result)
                return 0
            if same and into_buffer:
                torch_operand(tensor.impl).copy_(result)
                return 0
            if same and nbytes <= WORTH_ADOPTING and device_type_of(impl) == DL_CPU:
                if nbytes:
                    _keep = impl.held(&data, "Operator.Output")
                    memmove(data, fresh.data("Operator.Output"), nbytes)
                return 0
    # the result of an operation is as large as its sizes
    set_flags(fresh.storage, fresh.storage.flags & ~UNVERIFIED)
    # torch must not give it other memory, as it does with an out= of other sizes: another thread
    # may be using the address.
    fresh.storage.retain()
    if fits:
        return become(tensor.impl, fresh)
    hold_tensor(target, wrap(fresh), True)
    return 0


cdef bint same_start(TensorImpl fresh, TensorImpl impl):
    """Return whether a new tensor has the type, the number of elements and the memory of `impl`."""
    impl = seen(impl)
    return fresh.c_dtype is impl.c_dtype and fresh.c_numel == impl.c_numel \
        and fresh.storage.data == \
        begin_of(impl.storage) + impl.offset * impl.c_dtype.itemsize
