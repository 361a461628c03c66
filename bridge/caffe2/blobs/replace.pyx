# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""New contents of a tensor in one step, between which no other thread sees the tensor.

Nothing here runs Python between the first change of the tensor and the last, so with the GIL no
other thread runs; without it the tensor is locked. What the tensor had is released last.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memmove

from bridge.c10.copy cimport contiguous_copy
from bridge.c10.storage cimport EXTERNAL, READONLY, Storage
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    OWN_ORIGIN,
    RESERVED,
    TensorImpl,
    former,
    set_dtype,
    set_impl_flags,
    set_offset,
    storage_of,
)
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.numpy cimport import_array

from bridge.c10.flags import FLAGS


def copy_array(Tensor tensor not None, array):
    """Copy a NumPy array of numbers into the tensor, which gets its sizes and type.

    The tensor keeps its buffer if that is the bridge's own, of the same type and large enough, and
    not much larger than `FLAGS` allow. Raises MemoryError; the tensor is then unchanged.
    """
    cdef TensorImpl source = import_array(array, None)
    cdef int64_t spare = (
        FLAGS.caffe2_max_keep_on_shrink_memory if FLAGS.caffe2_keep_on_shrink else -1)
    if not source.flags & CONTIGUOUS:
        source = contiguous_copy(source, "FeedBlob")
    if not _put(tensor.impl, source, spare):
        become(tensor.impl, contiguous_copy(source, "FeedBlob"))


cdef bint _put(TensorImpl impl, TensorImpl source, int64_t most_spare) except -1:
    """Copy the elements of `source` into the buffer of `impl`; return False if it is replaced."""
    cdef Storage storage
    while True:
        storage = storage_of(impl)
        if storage is None:
            return False
        # both at once: a second section that has to wait lets go of the first
        with cython.critical_section(impl, storage):
            if impl.storage is storage:
                _former = former(impl)      # released on return
                return _put_locked(impl, storage, source, most_spare)


cdef bint _put_locked(
    TensorImpl impl, Storage storage, TensorImpl source, int64_t most_spare,
) except -1:
    cdef int64_t nbytes = source.c_numel * source.c_dtype.itemsize
    cdef int64_t begin, spare
    if storage.data == NULL or storage.flags & (EXTERNAL | READONLY) \
            or storage.device_type != DL_CPU or impl.c_dtype is not source.c_dtype \
            or storage.c_dtype is not source.c_dtype:
        return False
    begin = impl.offset * impl.c_dtype.itemsize
    spare = storage.c_nbytes - begin - nbytes
    if spare < 0 or (source.c_numel != impl.c_numel and spare > most_spare):
        return False
    impl.set_contiguous(source.c_sizes, source.ndim, source.c_numel)
    if nbytes:
        memmove(storage.data + begin, source.storage.data, nbytes)
    return True


def adopt(Tensor tensor not None, Tensor fresh not None):
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
