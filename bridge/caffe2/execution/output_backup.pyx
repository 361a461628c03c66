# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""What an operator's outputs were before it ran, to be put back where it fails.

That is the tensors that the blobs held, their sizes, types and buffers, and the elements too, a
copy of which is kept while an operator runs that may write before its last check. Where outputs are
large that copy takes time; an operator that computes first and writes last says so
(`Operator.writes_last`) and is spared it.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from bridge.c10 cimport content
from bridge.c10.dims cimport Dims, parse_dims
from bridge.c10.storage cimport READONLY, Elements, Storage
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport undefined_type
from bridge.caffe2.blobs.core cimport BlobCore
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.dlpack.abi cimport DL_CPU

cdef int64_t _held_so_far = 0


@cython.freelist(8)
cdef class Held:
    """What a blob held, and how it was, before an operator had it as an output."""

    cdef int put_back(self) except -1:
        cdef BlobCore blob = self.blob
        cdef TensorImpl impl = self.impl
        cdef Storage storage = self.storage
        cdef Dims dims
        cdef Elements elements
        blob._own = False
        blob._tensor = self.tensor
        blob._object = self.object
        blob._meta = self.meta
        blob._own = self.own
        if impl is not None:
            dims = parse_dims(self.sizes, "Operator")
            if impl.storage is not storage:
                impl.set_storage(storage)
            storage.data = self.data
            storage.c_nbytes = self.nbytes
            storage.ctx = self.ctx
            storage.c_dtype = self.storage_dtype
            storage.flags = self.storage_flags
            impl.c_dtype = self.dtype
            impl.set_contiguous(dims.data, dims.n, _numel(dims))
            impl.offset = self.offset
            impl.origin = self.origin
            impl.flags = self.flags
            if self.content is None:
                pass
            elif type(self.content) is bytes:
                memcpy(impl.data("Operator"), PyBytes_AS_STRING(self.content),
                       <size_t>(impl.c_numel * impl.c_dtype.itemsize))
            elif type(self.content) is list:
                elements = self.ctx
                elements.items[:] = self.content
            else:
                content.copy_from(impl, (<Tensor>self.content).impl, "Operator")
        return 0


cdef int64_t _numel(Dims dims):
    cdef int64_t numel = 1
    cdef int i
    for i in range(dims.n):
        numel *= dims.data[i]
    return numel


cdef Held hold(BlobCore blob, bint writes_last):
    """Remember what `blob` holds, its elements too unless the operator writes last."""
    global _held_so_far
    cdef Held held = Held.__new__(Held)
    cdef Tensor tensor = blob._tensor
    cdef TensorImpl impl
    cdef Storage storage
    _held_so_far += 1
    held.number = _held_so_far
    held.blob = blob
    held.tensor = tensor
    held.own = blob._own
    held.object = blob._object
    held.meta = blob._meta
    if tensor is None or tensor.impl.storage is None:
        return held
    impl = tensor.impl
    storage = impl.storage
    held.impl = impl
    held.dtype = impl.c_dtype
    held.origin = impl.origin
    held.offset = impl.offset
    held.sizes = impl.sizes_view()
    held.flags = impl.flags
    held.storage = storage
    held.data = storage.data
    held.nbytes = storage.c_nbytes
    held.ctx = storage.ctx
    held.storage_dtype = storage.c_dtype
    held.storage_flags = storage.flags
    if not writes_last and impl.c_numel and storage.data != NULL \
            and not storage.flags & READONLY and impl.c_dtype is not undefined_type:
        if not impl.c_dtype.c_is_pod:
            held.content = list((<Elements>storage.ctx).items)
        elif storage.device_type == DL_CPU:
            held.content = PyBytes_FromStringAndSize(
                impl.data("Operator"), impl.c_numel * impl.c_dtype.itemsize)
        else:
            held.content = tensor.Clone()
    return held


cdef int restore(list held) except -1:
    """Put back what was remembered, the last first: outputs may share a blob, or memory.

    Where memory is gone, which is an error, the others are put back nevertheless.
    """
    cdef object error = None
    numbered = [((<Held>one).number, one) for one in held if one is not None]
    for _, one in sorted(numbered, reverse=True):
        try:
            (<Held>one).put_back()
        except Exception as cause:
            error = cause
    if error is not None:
        raise error
    return 0
