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
from bridge.c10.tensor_impl cimport (
    SNAPSHOT,
    TensorImpl,
    former,
    is_undefined,
    seen,
    set_dtype,
    set_impl_flags,
    set_offset,
)
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
        cdef char* data
        with cython.critical_section(blob):
            _before = blob._tensor, blob._object, blob._meta     # released on return
            blob._own = False
            blob._tensor = self.tensor
            blob._object = self.object
            blob._meta = self.meta
            blob._own = self.own
        if impl is not None:
            dims = parse_dims(self.sizes, "Operator")
            install(storage, self.ctx, self.data, self.storage_dtype, self.nbytes,
                    self.storage_flags)
            with cython.critical_section(impl):
                _former = former(impl)      # released on return
                if impl.storage is not storage:
                    impl.set_storage(storage)
                set_dtype(impl, self.dtype)
                impl.set_contiguous(dims.data, dims.n, _numel(dims))
                set_offset(impl, self.offset)
                impl.origin = self.origin
                set_impl_flags(impl, self.flags)
            if self.content is None:
                pass
            elif type(self.content) is bytes:
                impl = seen(impl)
                _keep = impl.held(&data, "Operator")
                if impl.c_numel * impl.c_dtype.itemsize == len(<bytes>self.content):
                    memcpy(data, PyBytes_AS_STRING(self.content), len(<bytes>self.content))
                # else another thread has changed the tensor
            elif type(self.content) is list:
                elements = self.ctx
                elements.items[:] = self.content
            else:
                content.copy_from(impl, (<Tensor>self.content).impl, "Operator")
                with cython.critical_section(impl):
                    impl.origin = self.origin       # which a copy between devices may drop
                    set_impl_flags(impl, self.flags)
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
    cdef char* data
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
    if not writes_last and impl.c_numel and backup.data != NULL \
            and not backup.storage_flags & READONLY and impl.c_dtype is not undefined_type:
        if not impl.c_dtype.c_is_pod:
            backup.content = list((<Elements?>backup.ctx).items)
        elif storage.device_type == DL_CPU:
            _keep = impl.held(&data, "Operator")
            backup.content = PyBytes_FromStringAndSize(
                data, impl.c_numel * impl.c_dtype.itemsize)
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
