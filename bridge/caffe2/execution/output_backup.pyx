# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Backups of an operator's outputs, restored if it fails.

A backup has the tensor of the blob, its sizes, type and buffer. It also has a copy of the elements
if the operator may write before its last check. That copy takes time for large outputs; a class
that writes after everything that can fail sets `Operator.writes_last`, and no elements are copied.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from bridge.c10 cimport content
from bridge.c10.dims cimport Dims, parse_dims
from bridge.c10.python_api cimport add_to
from bridge.c10.storage cimport READONLY, Elements, Storage, install
from bridge.c10.tensor_impl cimport SNAPSHOT, TensorImpl, is_undefined, seen
from bridge.c10.type_meta cimport undefined_type
from bridge.caffe2.blobs.core cimport BlobCore, tensor_of
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.dlpack.abi cimport DL_CPU

cdef int64_t _backups_so_far = 0


@cython.freelist(8)
cdef class OutputBackup:
    """The value of a blob, with its metadata, before an operator used it as an output."""

    cdef int restore(self) except -1:
        cdef BlobCore blob = self.blob
        cdef TensorImpl impl = self.impl
        cdef Storage storage = self.storage
        cdef Dims dims
        cdef Elements elements
        with cython.critical_section(blob):
            blob._own = False
            blob._tensor = self.tensor
            blob._object = self.object
            blob._meta = self.meta
            blob._own = self.own
        if impl is not None:
            dims = parse_dims(self.sizes, "Operator")
            with cython.critical_section(impl):
                if impl.storage is not storage:
                    impl.set_storage(storage)
                install(storage, self.ctx, self.data, self.storage_dtype, self.nbytes,
                        self.storage_flags)
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
                impl.origin = self.origin       # which a copy between devices may drop
                impl.flags = self.flags
        return 0


cdef int64_t _numel(Dims dims):
    cdef int64_t numel = 1
    cdef int i
    for i in range(dims.n):
        numel *= dims.data[i]
    return numel


cdef OutputBackup back_up(BlobCore blob, bint writes_last):
    """Return a backup of `blob`, with a copy of its elements unless the operator writes last."""
    cdef OutputBackup backup = OutputBackup.__new__(OutputBackup)
    cdef Tensor tensor = tensor_of(blob)
    cdef TensorImpl impl
    cdef Storage storage
    backup.number = add_to(&_backups_so_far, 1)
    backup.blob = blob
    backup.tensor = tensor
    with cython.critical_section(blob):
        backup.own = blob._own
        backup.object = blob._object
        backup.meta = blob._meta
    if tensor is None or is_undefined(tensor.impl):
        return backup
    backup.impl = tensor.impl
    impl = seen(tensor.impl)
    storage = impl.storage
    backup.dtype = impl.c_dtype
    backup.origin = impl.origin
    backup.offset = impl.offset
    backup.sizes = impl.sizes_view()
    backup.flags = impl.flags & ~SNAPSHOT
    backup.storage = storage
    with cython.critical_section(storage):
        backup.data = storage.data
        backup.nbytes = storage.c_nbytes
        backup.ctx = storage.ctx
        backup.storage_dtype = storage.c_dtype
        backup.storage_flags = storage.flags
    if not writes_last and impl.c_numel and storage.data != NULL \
            and not storage.flags & READONLY and impl.c_dtype is not undefined_type:
        if not impl.c_dtype.c_is_pod:
            backup.content = list((<Elements?>backup.ctx).items)
        elif storage.device_type == DL_CPU:
            backup.content = PyBytes_FromStringAndSize(
                impl.data("Operator"), impl.c_numel * impl.c_dtype.itemsize)
        else:
            backup.content = tensor.Clone()
    return backup


cdef int restore_all(list backups) except -1:
    """Restore backups, the latest first: outputs may share a blob or memory.

    If one cannot be restored, restore the others before raising its error.
    """
    cdef object error = None
    numbered = [((<OutputBackup>one).number, one) for one in backups if one is not None]
    for _, one in sorted(numbered, reverse=True):
        try:
            (<OutputBackup>one).restore()
        except Exception as cause:
            error = cause
    if error is not None:
        raise error
    return 0
