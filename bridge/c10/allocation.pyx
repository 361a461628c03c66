# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Memory for the elements of a TensorImpl: when it is kept, allocated and freed.

Each function checks and allocates first and changes the tensor last, so one that raises leaves the
tensor as it was. The rules are those of c10/core/TensorImpl.h and caffe2/core/tensor.{h,cc},
PyTorch 1.8.1; where those would access freed memory or memory out of bounds, the tensor is
reallocated or the call refused, and a comment says so.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t

from bridge.c10.allocator cimport allocator_of
from bridge.c10.layout cimport checked_mul
from bridge.c10.python_api cimport word8, word64
from bridge.c10.storage cimport (
    OBJECTS,
    READONLY,
    Storage,
    allocate_buffer,
    begin_of,
    flags_of,
    install,
    nbytes_of,
    new_storage,
    set_storage_type,
    storage_type,
)
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    RESERVED,
    TensorImpl,
    dtype_of,
    former,
    is_contiguous_now,
    set_dtype,
    set_offset,
)
from bridge.c10.type_meta cimport TypeMeta, undefined_type
from bridge.dlpack.abi cimport DL_CPU

from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.c10.resize_flags import FLAGS


cdef int require_contiguous(TensorImpl self, str caller) except -1:
    """Raise EnforceNotMet unless the tensor is defined and row-major without gaps."""
    self.require_defined(caller)
    if not is_contiguous_now(self):
        raise EnforceNotMet(
            f"{caller.rpartition('.')[2]} is for contiguous tensors; this one has strides "
            f"{self.strides().vec()}. Call contiguous() first.", caller,
            condition="is_contiguous()")
    return 0


cdef int64_t nbytes_needed(TensorImpl self, int64_t numel, str caller) except -1:
    """Return the bytes from the beginning of the storage that `numel` elements need.

    Raises EnforceValueError: more than an int64 counts.
    """
    cdef int64_t total = checked_mul(self.offset + numel, self.c_dtype.itemsize) \
        if numel <= INT64_MAX - self.offset else -1
    if total < 0:
        raise EnforceValueError(
            f"{numel} elements of {self.c_dtype} take more bytes than an int64 counts.", caller,
            condition="nbytes() < 2**63")
    return total


cdef int require_allocator(Storage storage) except -1:
    """Raise EnforceNotMet if the device has no allocator, though an empty tensor needs none."""
    if storage.device_type != DL_CPU:
        allocator_of(storage.device_type, storage.device_index)
    return 0


cdef int require_type(TypeMeta dtype, str caller) except -1:
    if dtype is undefined_type:
        raise EnforceNotMet(
            "The tensor has no element type yet, and no type was given. Call mutable_data(T) "
            "with a type.", caller, condition="dtype_initialized()")
    return 0


cdef bint same_kind(TensorImpl self) noexcept:
    """Return whether the storage holds elements of the tensor's kind.

    Plain memory and Python objects are the two kinds; a tensor that shares the storage may have
    changed it.
    """
    if word8(&self.storage.flags) & OBJECTS:
        return storage_type(self.storage) == dtype_of(self)
    return self.c_dtype.c_is_pod or self.c_dtype is undefined_type


cdef int64_t max_idle_nbytes() except? -1:
    """Return how many bytes may lie idle before Resize drops the buffer."""
    cdef int64_t value = FLAGS.caffe2_max_keep_on_shrink_memory
    # Upstream compares it as an unsigned number, so a negative one keeps everything.
    return value if value >= 0 else INT64_MAX


cdef bint keeps_buffer(TensorImpl self, int64_t numel):
    """Return whether `numel` elements of the same type go into the existing buffer."""
    with cython.critical_section(self):
        return _keeps_buffer(self, numel)


cdef bint _keeps_buffer(TensorImpl self, int64_t numel):
    cdef Storage storage = self.storage
    cdef int64_t itemsize = self.c_dtype.itemsize
    cdef int64_t needed
    if begin_of(storage) == NULL or flags_of(storage) & READONLY or not same_kind(self):
        return False
    if numel > (INT64_MAX // itemsize) - self.offset:
        return False
    needed = (self.offset + numel) * itemsize
    if needed > nbytes_of(storage):
        return False
    return (numel == self.c_numel or self.flags & RESERVED
            or (FLAGS.caffe2_keep_on_shrink and nbytes_of(storage) - needed <= max_idle_nbytes()))


cdef bint _buffer_fits(TensorImpl self):
    """Return whether the storage still has room for all elements, and is of their kind."""
    if not same_kind(self):
        return False
    if not self.flags & CONTIGUOUS:
        return True     # data() checks the strides
    return (self.offset + self.c_numel) * self.c_dtype.itemsize <= word64(&self.storage.c_nbytes)


@cython.critical_section
cdef int mutable_data(TensorImpl self, TypeMeta dtype, str caller) except -1:
    """Make the tensor hold memory for its elements as `dtype`.

    The existing buffer is kept where it is large enough and of a compatible type. New memory goes
    into the Storage, so all tensors that share it get it; POD elements are not initialised.

    Raises EnforceNotMet: undefined, no type, read-only, or no allocator for the device.
    MemoryError.
    """
    cdef Storage storage
    cdef char* data = NULL
    cdef int64_t needed
    self.require_defined(caller)
    require_type(dtype, caller)
    _former = former(self)      # released on return, as in every function below
    storage = self.storage
    needed = checked_mul(self.c_numel, dtype.itemsize)
    if needed < 0:
        raise MemoryError(f"{self.c_numel} elements of {dtype} exceed any memory.")
    if self.c_dtype is dtype and self.storage_initialized():
        if self.c_numel:
            self.writable(caller)
            if _buffer_fits(self):
                storage.check()
                return 0
            # Another tensor that shares the storage left too little memory, or elements of another
            # kind. Upstream would write out of bounds; here the storage gets new memory.
    elif self.c_numel == 0:
        require_allocator(storage)
        set_offset(self, 0)
        self.origin = None
        set_dtype(self, dtype)
        return 0
    elif (dtype.c_is_pod and (self.c_dtype.c_is_pod or self.c_dtype is undefined_type)
            and not flags_of(storage) & OBJECTS
            and begin_of(storage) != NULL and nbytes_of(storage) >= needed):
        # No constructor and no destructor to run: the bytes are used again, from here on as
        # elements that a tensor which lent them does not have.
        self.writable(caller)
        storage.retain()
        set_offset(self, 0)
        self.origin = None
        set_dtype(self, dtype)
        set_storage_type(storage, dtype)
        return 0
    if self.c_numel == 0:
        return 0
    ctx = allocate_buffer(
        storage.device_type, storage.device_index, dtype, self.c_numel, &data, caller)
    set_offset(self, 0)
    self.origin = None
    set_dtype(self, dtype)
    install(storage, ctx, data, dtype, needed, 0)
    return 0


@cython.critical_section
cdef int free_memory(TensorImpl self, str caller) except -1:
    """Replace the Storage by an empty one; tensors that share the old one keep it."""
    cdef Storage empty
    self.require_defined(caller)
    empty = new_storage(self.storage.device_type, self.storage.device_index)
    _former = former(self)
    self.set_storage(empty)
    set_offset(self, 0)
    return 0
