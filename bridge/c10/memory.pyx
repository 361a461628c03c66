# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The memory manager that a TensorImpl is in Caffe2 style.

Every function checks and allocates first and changes the tensor after that, so
one that raises leaves it as it was. The rules are those of
c10/core/TensorImpl.h and caffe2/core/tensor.{h,cc}, PyTorch 1.8.1; where those
would touch freed memory or memory out of bounds, the tensor is reallocated or
the call refused, and a comment says so.
"""

from libc.math cimport ceil
from libc.stdint cimport INT64_MAX, int64_t, uint64_t

from bridge.c10.allocator cimport allocator_of
from bridge.c10.array_ref cimport Dims, new_dims, parse_dims
from bridge.c10.copy cimport copy_elements, require_alike
from bridge.c10.device cimport host_accessible
from bridge.c10.layout cimport checked_mul, contiguous_strides
from bridge.c10.storage cimport (
    EXTERNAL,
    READONLY,
    Elements,
    Storage,
    allocate_buffer,
    install,
    new_storage,
)
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    RESERVED,
    TensorImpl,
    allocated,
    like,
    require_numel,
)
from bridge.c10.type_meta cimport TypeMeta, undefined_type
from bridge.dlpack.abi cimport DL_CPU

from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.c10.flags import FLAGS


cdef int _require_contiguous(TensorImpl self, str caller) except -1:
    self.require_defined(caller)
    if not self.flags & CONTIGUOUS:
        raise EnforceNotMet(
            f"{caller.rpartition('.')[2]} is for contiguous tensors; this one has strides "
            f"{self.strides().vec()}. Call contiguous() first.", caller, condition="is_contiguous()")
    return 0


cdef int64_t _nbytes(TensorImpl self, int64_t numel, str caller) except -1:
    """Bytes from the beginning of the storage that `numel` elements need."""
    cdef int64_t total = checked_mul(self.offset + numel, self.c_dtype.itemsize) \
        if numel <= INT64_MAX - self.offset else -1
    if total < 0:
        raise EnforceValueError(
            f"{numel} elements of {self.c_dtype} are more bytes than an int64 counts.", caller,
            condition="nbytes() < 2**63")
    return total


cdef int free_memory(TensorImpl self, str caller) except -1:
    """A new, empty Storage; who shared the old one keeps it."""
    self.require_defined(caller)
    self.set_storage(new_storage(self.storage.device_type, self.storage.device_index))
    self.offset = 0
    return 0


cdef int resize(TensorImpl self, const int64_t* sizes, int ndim, str caller) except -1:
    """New sizes; the buffer goes where it cannot hold them, or need not."""
    cdef int64_t numel, needed
    cdef bint changed, drop
    self.require_defined(caller)
    numel = require_numel(sizes, ndim, caller)
    needed = _nbytes(self, numel, caller)
    changed = numel != self.c_numel
    self.set_contiguous(sizes, ndim, numel)
    if not changed:
        return 0
    drop = self.storage.c_nbytes < needed
    if not drop and not self.flags & RESERVED:
        drop = (not FLAGS.caffe2_keep_on_shrink
                or self.storage.c_nbytes - needed > _max_keep())
    if drop and self.storage_initialized():
        free_memory(self, caller)
    return 0


def resize_allocated(TensorImpl self, sizes, caller):
    """New sizes, of the type that is there, with memory; on MemoryError nothing has changed."""
    cdef Dims dims = parse_dims(sizes, caller)
    cdef TensorImpl target
    cdef int64_t numel
    self.require_defined(caller)
    _require_type(self.c_dtype, caller)
    numel = require_numel(dims.data, dims.n, caller)
    if _keeps_buffer(self, numel) or numel == 0:
        resize(self, dims.data, dims.n, caller)
        mutable_data(self, self.c_dtype, caller)
        return
    target = allocated(dims.data, dims.n, self.c_dtype, self.storage.device_type,
                       self.storage.device_index, caller)
    resize(self, dims.data, dims.n, caller)
    self.offset = 0
    self.origin = None
    self.c_dtype = target.c_dtype
    install(self.storage, target.storage.ctx, target.storage.data, target.c_dtype,
            target.storage.c_nbytes, 0)


cdef int64_t _max_keep() except? -1:
    cdef int64_t value = FLAGS.caffe2_max_keep_on_shrink_memory
    # compared as an unsigned number upstream, so a negative one keeps everything
    return value if value >= 0 else INT64_MAX


cdef int reshape(TensorImpl self, const int64_t* sizes, int ndim, str caller) except -1:
    """Other sizes of the same product; the buffer stays."""
    cdef int64_t numel
    _require_contiguous(self, caller)
    numel = require_numel(sizes, ndim, caller)
    if numel != self.c_numel:
        raise EnforceNotMet(
            f"{self.c_numel} elements do not become {numel}. Reshape keeps their number; "
            "Resize changes it.", caller, condition="numel() == new numel")
    self.set_contiguous(sizes, ndim, numel)
    return 0


cdef int _require_device(Storage storage) except -1:
    """Refuse a device that has no memory here, of which no elements would ask none."""
    if storage.device_type != DL_CPU:
        allocator_of(storage.device_type, storage.device_index)
    return 0


cdef int _require_type(TypeMeta dtype, str caller) except -1:
    if dtype is undefined_type:
        raise EnforceNotMet(
            "The tensor has no element type yet, and none was given. Call mutable_data(T) with "
            "a type.", caller, condition="dtype_initialized()")
    return 0


cdef int mutable_data(TensorImpl self, TypeMeta dtype, str caller) except -1:
    """Have memory for elements of `dtype`: what is there, where it fits, or new memory.

    A tensor that shares its storage gets the new memory for all that share.
    """
    cdef Storage storage
    cdef char* data = NULL
    cdef int64_t needed
    self.require_defined(caller)
    _require_type(dtype, caller)
    storage = self.storage
    needed = checked_mul(self.c_numel, dtype.itemsize)
    if needed < 0:
        raise MemoryError(f"{self.c_numel} elements of {dtype} are more than memory can be.")
    if self.c_dtype is dtype and self.storage_initialized():
        if self.c_numel:
            self.writable(caller)
            if _still_there(self):
                storage.check()
                return 0
            # Another tensor that shares the storage left too little, or other
            # elements: upstream would overrun here. Our own rule: new memory.
    elif self.c_numel == 0:
        _require_device(storage)
        self.offset = 0
        self.origin = None
        self.c_dtype = dtype
        return 0
    elif (dtype.c_is_pod and (self.c_dtype.c_is_pod or self.c_dtype is undefined_type)
            and type(storage.ctx) is not Elements
            and storage.data != NULL and storage.c_nbytes >= needed):
        # neither constructor nor destructor to run: the bytes serve again
        self.writable(caller)
        storage.check()
        self.offset = 0
        self.origin = None
        self.c_dtype = dtype
        storage.c_dtype = dtype
        return 0
    if self.c_numel == 0:
        return 0
    ctx = allocate_buffer(
        storage.device_type, storage.device_index, dtype, self.c_numel, &data, caller)
    self.offset = 0
    self.origin = None
    self.c_dtype = dtype
    install(storage, ctx, data, dtype, needed, 0)
    return 0


cdef bint _same_kind(TensorImpl self) noexcept:
    """Whether the storage, which others may have changed, holds elements as the tensor's."""
    if type(self.storage.ctx) is Elements:
        return self.storage.c_dtype is self.c_dtype
    return self.c_dtype.c_is_pod or self.c_dtype is undefined_type


cdef bint _still_there(TensorImpl self):
    """Whether the storage still holds all elements, of this kind."""
    if not _same_kind(self):
        return False
    if not self.flags & CONTIGUOUS:
        return True     # data() looks closer
    return (self.offset + self.c_numel) * self.c_dtype.itemsize <= self.storage.c_nbytes


cdef enum:
    SMALL_BITS = 28     # counts of so many bits make no product here that overflows


cdef bint extend_in_place(TensorImpl self, int64_t num) noexcept:
    """Add `num` rows where that needs no new buffer, of an ordinary tensor; False: ask `extend`.

    Takes no references: this is what a million small steps spend their time on.
    """
    cdef int64_t row = 1
    cdef int64_t numel
    cdef int i
    if (self.storage is None or not self.flags & CONTIGUOUS or self.ndim < 1
            or (self.c_numel == 0 and self.ndim > 1)
            or <uint64_t>(num | self.c_numel | self.offset) >> SMALL_BITS):
        return False
    for i in range(1, self.ndim):
        row *= self.c_sizes[i]
    numel = self.c_numel + num * row
    if self.storage.data != NULL and not (
            (self.offset + numel) * self.c_dtype.itemsize <= self.storage.c_nbytes
            and _same_kind(self)):
        return False
    self.c_sizes[0] += num
    self.c_numel = numel
    if self.ndim == 1:
        self.c_sizes[1] = 1
    else:
        contiguous_strides(self.c_sizes, self.c_sizes + self.ndim, self.ndim)
    if self.sizes_ref is not None:
        self.sizes_ref = None
    if self.origin is not None:
        self.origin = None
    return True


cdef int extend(TensorImpl self, int64_t num, double growth_pct, str caller) except -1:
    """(d0, ...) -> (d0 + num, ...), keeping the data; spare room of growth_pct percent."""
    cdef Dims dims
    cdef Storage storage
    cdef int64_t numel, outer, rows, kept, i
    cdef double grown
    cdef TensorImpl target
    if extend_in_place(self, num):
        return 0
    _require_contiguous(self, caller)
    if self.ndim < 1:
        raise EnforceNotMet(
            "A tensor without dimensions has no outer one to extend.", caller, condition="dim() >= 1")
    if num < 0:
        raise EnforceNotMet(
            f"Extend adds rows, and {num} is negative. ShrinkTo takes rows away.",
            caller, condition="num >= 0")
    if num > INT64_MAX - self.c_sizes[0]:
        raise EnforceValueError(
            f"{num} rows on top of {self.c_sizes[0]} do not fit an int64.", caller)
    storage = self.storage
    dims = new_dims(self.ndim)
    for i in range(self.ndim):
        dims.data[i] = self.c_sizes[i]
    dims.data[0] += num
    if storage.data == NULL:
        return resize(self, dims.data, dims.n, caller)
    numel = require_numel(dims.data, dims.n, caller)
    if _nbytes(self, numel, caller) <= storage.c_nbytes and (numel == 0 or _same_kind(self)):
        self.set_contiguous(dims.data, dims.n, numel)
        return 0
    outer = dims.data[0]
    # in single precision, as upstream computes the factor
    grown = ceil(<double>(<float>self.c_sizes[0] * (<float>1 + <float>growth_pct / <float>100)))
    if grown > <double>outer:
        if grown >= 9.2e18:
            raise EnforceValueError(
                f"Growing {self.c_sizes[0]} rows by {growth_pct} percent does not fit an int64.", caller)
        dims.data[0] = <int64_t>grown
    rows, kept = self.c_sizes[0], self.c_numel
    target = allocated(dims.data, dims.n, self.c_dtype, storage.device_type,
                       storage.device_index, caller)
    dims.data[0] = rows
    target.set_contiguous(dims.data, dims.n, kept)
    if target.c_dtype.c_is_pod or storage.users > 1:
        copy_elements(target, self, caller)
    else:
        # Nobody else has the elements: they move, and need not know how to be copied.
        self.data(caller)
        require_alike(target, self, caller)
        (<Elements>target.storage.ctx).items[:kept] = \
            (<Elements>self.storage.ctx).items[self.offset:self.offset + kept]
    dims.data[0] = outer
    # A storage of its own from here on; who shared the old one keeps it. (Upstream
    # the others are left with freed memory.)
    self.set_storage(target.storage)
    self.offset = 0
    self.flags |= RESERVED
    self.set_contiguous(dims.data, dims.n, numel)
    return 0


cdef int shrink_to(TensorImpl self, int64_t outer_dim, str caller) except -1:
    """(d0, ...) -> (outer_dim, ...), keeping data and buffer."""
    cdef Dims dims
    cdef int i
    _require_contiguous(self, caller)
    if self.ndim < 1:
        raise EnforceNotMet(
            "A tensor without dimensions has no outer one to shrink.", caller, condition="dim() >= 1")
    if outer_dim < 0 or outer_dim > self.c_sizes[0]:
        raise EnforceNotMet(
            f"ShrinkTo goes from {self.c_sizes[0]} rows to fewer, and {outer_dim} is not that. "
            "Extend adds rows.", caller, condition="0 <= outer_dim <= size(0)")
    if self.storage.users != 1:
        raise EnforceNotMet(
            f"{self.storage.users} tensors share the storage. Call Resize instead.", caller,
            condition="storage().unique()")
    dims = new_dims(self.ndim)
    for i in range(self.ndim):
        dims.data[i] = self.c_sizes[i]
    dims.data[0] = outer_dim
    self.set_contiguous(dims.data, dims.n, require_numel(dims.data, dims.n, caller))
    return 0


cdef int reserve_space(TensorImpl self, int64_t outer_dim, str caller) except -1:
    """Memory for `outer_dim` rows, the old data dropped if that needs a new buffer."""
    cdef Dims dims
    cdef Storage storage
    cdef TypeMeta dtype = self.c_dtype      # the tensor's may be another after allocate_buffer
    cdef char* data = NULL
    cdef int64_t capacity, i
    _require_contiguous(self, caller)
    storage = self.storage
    if storage.users != 1:
        raise EnforceNotMet(
            f"{storage.users} tensors share the storage, and the others would lose their data.", caller,
            condition="storage().unique()")
    if self.ndim < 1:
        raise EnforceNotMet(
            "A tensor without dimensions has no outer one to reserve rows for.",
            caller, condition="dim() >= 1")
    if outer_dim < 0:
        raise EnforceNotMet(
            f"{outer_dim} rows cannot be reserved.", caller, condition="outer_dim >= 0")
    dims = new_dims(self.ndim)
    for i in range(self.ndim):
        dims.data[i] = self.c_sizes[i]
    dims.data[0] = outer_dim
    capacity = require_numel(dims.data, dims.n, caller)
    _nbytes(self, capacity, caller)
    # The offset of a view does not count here, as upstream; Extend counts it.
    if capacity * dtype.itemsize <= storage.c_nbytes:
        return 0
    if capacity < self.c_numel:
        # Upstream leaves fewer bytes than the sizes say; enough for both is safe.
        capacity = self.c_numel
    ctx = allocate_buffer(
        storage.device_type, storage.device_index, dtype, capacity, &data, caller)
    self.offset = 0
    self.origin = None
    install(storage, ctx, data, dtype, capacity * dtype.itemsize, 0)
    self.flags |= RESERVED
    return 0


cdef int share_data(TensorImpl self, TensorImpl src, str caller) except -1:
    """Share the storage of `src`, its type and its offset; sizes stay."""
    self.require_defined(caller)
    src.require_defined(caller)
    if src.c_numel != self.c_numel:
        raise EnforceNotMet(
            f"The source has {src.c_numel} elements and this tensor {self.c_numel}. "
            "Call ResizeLike(src) first.", caller, condition="src.numel() == numel()")
    if not src.flags & CONTIGUOUS or not self.flags & CONTIGUOUS:
        raise EnforceNotMet(
            "Both tensors must be contiguous to share data with other sizes.", caller,
            condition="is_contiguous()")
    if not src.storage_initialized():
        raise EnforceNotMet(
            "The source has no content: call mutable_data(T) on it first.", caller,
            condition="src.storage_initialized()")
    self.c_dtype = src.c_dtype
    self.offset = src.offset
    self.set_storage(src.storage)       # last: the end of the old one may let other threads run
    return 0


cdef int share_external(
    TensorImpl self, object ctx, char* data, TypeMeta dtype, int64_t nbytes, str caller,
) except -1:
    """Look at memory from outside; a storage that others share is left to them."""
    cdef Storage storage
    _require_contiguous(self, caller)
    if self.storage.users == 1:
        storage = self.storage
    else:
        storage = new_storage(self.storage.device_type, self.storage.device_index)
    self.origin = None
    self.c_dtype = dtype
    self.offset = 0
    if storage is not self.storage:
        self.set_storage(storage)
    install(storage, ctx, data, dtype, nbytes, EXTERNAL)
    return 0


cdef int copy_from(TensorImpl self, TensorImpl src, str caller) except -1:
    """Become a copy of `src`: its sizes, type and elements, on the device of `self`.

    Elements of the same type go into the buffer that is there, if Resize would
    keep it; tensors that share it see them. Of another type they go into a
    storage of their own.
    """
    cdef Storage storage
    cdef TensorImpl target
    cdef bint same_type
    self.require_defined(caller)
    src.require_defined(caller)
    if not src.flags & CONTIGUOUS:
        raise EnforceNotMet(
            "CopyFrom takes contiguous tensors; call contiguous() on the source.", caller,
            condition="src.is_contiguous()")
    if not src.storage_initialized():
        raise EnforceNotMet(
            "The source has no content: call mutable_data(T) on it first.", caller,
            condition="src.storage_initialized()")
    if self is src:
        return 0
    same_type = self.c_dtype is src.c_dtype
    if src.c_numel == 0:
        _require_device(self.storage)
        if not same_type:
            free_memory(self, caller)
            self.c_dtype = src.c_dtype
        return resize(self, src.c_sizes, src.ndim, caller)
    src.data(caller)
    storage = self.storage
    if same_type and _keeps_buffer(self, src.c_numel):
        storage.check()
        if src.c_dtype.c_is_pod and host_accessible(storage.device_type) \
                and host_accessible(src.storage.device_type):
            self.set_contiguous(src.c_sizes, src.ndim, src.c_numel)
            return copy_elements(self, src, caller)     # cannot fail any more
        # What may fail goes through a tensor apart, and this one gets the sizes after that.
        target = like(self)
        target.set_contiguous(src.c_sizes, src.ndim, src.c_numel)
        copy_elements(target, src, caller)
        if self.storage is not storage or self.c_dtype is not target.c_dtype:
            raise EnforceNotMet(
                "Copying an element gave the tensor other memory.", caller, condition="storage() is kept")
        self.set_contiguous(target.c_sizes, target.ndim, target.c_numel)
        return 0
    # Values into new memory first; then nothing can fail any more.
    target = allocated(src.c_sizes, src.ndim, src.c_dtype, storage.device_type,
                       storage.device_index, caller)
    copy_elements(target, src, caller)
    # The sizes of what was copied: the source may have others by now, in another thread.
    self.set_contiguous(target.c_sizes, target.ndim, target.c_numel)
    self.offset = 0
    self.c_dtype = target.c_dtype
    if same_type and storage is self.storage and storage.data == NULL:
        # whoever shares the empty storage gets the memory, too
        self.origin = None
        install(storage, target.storage.ctx, target.storage.data, target.c_dtype,
                target.storage.c_nbytes, 0)
    else:
        self.set_storage(target.storage)
    return 0


cdef bint _keeps_buffer(TensorImpl self, int64_t numel):
    """Whether `numel` elements of the same type go into the buffer that is there."""
    cdef Storage storage = self.storage
    cdef int64_t itemsize = self.c_dtype.itemsize
    cdef int64_t needed
    if storage.data == NULL or storage.flags & READONLY or not _same_kind(self):
        return False
    if numel > (INT64_MAX // itemsize) - self.offset:
        return False
    needed = (self.offset + numel) * itemsize
    if needed > storage.c_nbytes:
        return False
    return (numel == self.c_numel or self.flags & RESERVED
            or (FLAGS.caffe2_keep_on_shrink and storage.c_nbytes - needed <= _max_keep()))
