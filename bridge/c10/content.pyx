# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Content from elsewhere for a TensorImpl: shared, from outside, or copied.

Each function checks and allocates first and changes the tensor last, so one that raises leaves the
tensor as it was. The rules are those of c10/core/TensorImpl.h and caffe2/core/tensor.{h,cc},
PyTorch 1.8.1; where those would access freed memory or memory out of bounds, the tensor is
reallocated or the call refused, and a comment says so.
"""

cimport cython
from libc.stdint cimport int64_t

from bridge.c10.allocation cimport (
    free_memory,
    keeps_buffer,
    require_allocator,
    require_contiguous,
)
from bridge.c10.copy cimport copy_elements
from bridge.c10.device cimport host_accessible
from bridge.c10.python_api cimport FREE_THREADED
from bridge.c10.resizing cimport resize
from bridge.c10.storage cimport EXTERNAL, Storage, begin_of, install, new_storage, users_of
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    allocated,
    device_type_of,
    dtype_of,
    former,
    is_contiguous_now,
    is_storage,
    like,
    seen,
    set_dtype,
    set_offset,
    snapshot,
    storage_of,
)
from bridge.c10.type_meta cimport TypeMeta

from bridge.c10.errors import EnforceNotMet


cdef int _require_content(TensorImpl src, str caller) except -1:
    if not src.storage_initialized():
        raise EnforceNotMet(
            "The source has no content: call mutable_data(T) on it first.", caller,
            condition="src.storage_initialized()")
    return 0


@cython.critical_section
cdef int share_data(TensorImpl self, TensorImpl src, str caller) except -1:
    """Share the storage of `src`, its type and its offset; the sizes do not change.

    Raises EnforceNotMet: undefined, another number of elements, not contiguous, or `src` has no
    memory.
    """
    src = seen(src)
    self.require_defined(caller)
    src.require_defined(caller)
    _former = former(self)      # released on return, as in every function below
    if src.c_numel != self.c_numel:
        raise EnforceNotMet(
            f"The source has {src.c_numel} elements and this tensor {self.c_numel}. "
            "Call ResizeLike(src) first.", caller, condition="src.numel() == numel()")
    if not src.flags & CONTIGUOUS or not self.flags & CONTIGUOUS:
        raise EnforceNotMet(
            "Both tensors must be contiguous to share data with other sizes.", caller,
            condition="is_contiguous()")
    _require_content(src, caller)
    set_dtype(self, src.c_dtype)
    set_offset(self, src.offset)
    self.set_storage(src.storage)
    return 0


@cython.critical_section
cdef int share_external(
    TensorImpl self, object ctx, char* data, TypeMeta dtype, int64_t nbytes, str caller,
) except -1:
    """Use `nbytes` at `data`, memory from outside that `ctx` owns.

    A storage that other tensors share is left to them; this tensor then gets one of its own.
    Raises EnforceNotMet: undefined or not contiguous.
    """
    cdef Storage storage
    require_contiguous(self, caller)
    if users_of(self.storage) == 1:
        storage = self.storage
    else:
        storage = new_storage(self.storage.device_type, self.storage.device_index)
        install(storage, ctx, data, dtype, nbytes, EXTERNAL)
    _former = former(self)
    self.origin = None
    set_dtype(self, dtype)
    set_offset(self, 0)
    if storage is not self.storage:
        self.set_storage(storage)
    else:
        install(storage, ctx, data, dtype, nbytes, EXTERNAL)
    return 0


@cython.critical_section
cdef int _set_sizes(TensorImpl self, TensorImpl other) except -1:
    """Set the sizes to those of a contiguous tensor; memory and type stay."""
    _former = former(self)
    return self.set_contiguous(other.c_sizes, other.ndim, other.c_numel)


cdef int _require_copyable(TensorImpl src, str caller) except -1:
    if not is_contiguous_now(src):
        raise EnforceNotMet(
            "CopyFrom takes contiguous tensors; call contiguous() on the source.", caller,
            condition="src.is_contiguous()")
    return _require_content(src, caller)


cdef int copy_from(TensorImpl self, TensorImpl src, str caller) except -1:
    """Copy the sizes, the type and the elements of `src`; the device of `self` stays.

    Elements of the same type go into the existing buffer if Resize would keep it; tensors that
    share it see them. Elements of another type go into a new storage of this tensor's own.

    Raises EnforceNotMet: undefined, `src` is not contiguous or has no memory, or the device has no
    allocator. MemoryError.
    """
    cdef Storage storage
    cdef TensorImpl target, given
    cdef bint same_type
    if self is src:
        src.require_defined(caller)
        _require_copyable(src, caller)
        return 0
    given = src
    src = seen(src)
    self.require_defined(caller)
    src.require_defined(caller)
    _require_copyable(src, caller)
    storage = storage_of(self)
    same_type = dtype_of(self) == dtype_of(src)
    if src.c_numel == 0:
        require_allocator(storage)
        if not same_type:
            free_memory(self, caller)
            with cython.critical_section(self):
                set_dtype(self, src.c_dtype)
        return resize(self, src.c_sizes, src.ndim, caller)
    src.data(caller)
    if same_type and keeps_buffer(self, src.c_numel):
        storage.check()
        if src.c_dtype.c_is_pod and host_accessible(storage.device_type) \
                and host_accessible(device_type_of(src)):
            target = self
            if FREE_THREADED:       # where copy_elements allocates, unless it gets a snapshot
                target = snapshot(self)
                target.set_contiguous(src.c_sizes, src.ndim, src.c_numel)
            _set_sizes(self, src)
            return copy_elements(target, src, caller)   # cannot fail here
        # Copy into a temporary TensorImpl, since this may fail; the sizes are set afterwards.
        target = like(seen(self))
        target.set_contiguous(src.c_sizes, src.ndim, src.c_numel)
        copy_elements(target, src, caller)
        if not is_storage(self, storage) or dtype_of(self) != dtype_of(target):
            raise EnforceNotMet(
                "Copying an element replaced the memory of the tensor.", caller,
                condition="storage() is kept")
        return _set_sizes(self, target)
    # Copy into new memory first; nothing after that can fail.
    target = allocated(src.c_sizes, src.ndim, src.c_dtype, storage.device_type,
                       storage.device_index, caller)
    copy_elements(target, given, caller)    # which refuses it if it has other sizes by now
    return _become_copy(self, target, storage if same_type else None)


@cython.critical_section
cdef int _become_copy(TensorImpl self, TensorImpl target, Storage storage) except -1:
    """Set `self` to the sizes and the memory of `target`, a new copy.

    storage: the one that `self` had, if it has the same type. Tensors that share it get the memory,
    too, if it is empty.
    """
    # The sizes of what was copied: the source may have others by now, in another thread.
    _former = former(self)
    self.set_contiguous(target.c_sizes, target.ndim, target.c_numel)
    set_offset(self, 0)
    set_dtype(self, target.c_dtype)
    if storage is not None and storage is self.storage and begin_of(storage) == NULL:
        self.origin = None
        install(storage, target.storage.ctx, target.storage.data, target.c_dtype,
                target.storage.c_nbytes, 0)
    else:
        self.set_storage(target.storage)
    return 0
