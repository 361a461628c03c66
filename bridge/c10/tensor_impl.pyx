# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""TensorImpl: the tensor that both wrappers refer to.

Note: Uninitialised states
--------------------------
As in c10/core/TensorImpl.h, PyTorch 1.8.1, a tensor may lack a type or memory:

    caffe2.Tensor()                     undefined:  no storage, so neither device nor sizes
    t = caffe2.Tensor([2, 3], "cpu")    sized:      no type, no memory
    t.mutable_data("float32")           allocated:  float32 and memory
    t.Resize(4, 5)                      resized:    float32, and no memory, since it did not fit
    t.mutable_data("float32")           allocated

    state       storage     c_dtype     storage.data
    undefined   None        undefined   -
    sized       a Storage   undefined   NULL
    allocated   a Storage   a type      an address, or NULL where there are no elements
    resized     a Storage   a type      NULL

`require_defined` excludes the first; `data` excludes all but allocated.

Note: Invariants
----------------
- Sizes are not negative and their product fits an int64: `require_numel` checks every size that
  comes from outside, and no function sets sizes otherwise. With a type, the bytes fit one, too:
  where elements may be more than the memory, as with strides of zero, `require_nbytes` checks.
- The offset is not negative, and its bytes fit an int64 (`MAX_OFFSET`), also where no element is.
- There are `ndim` sizes and `ndim` strides in `c_sizes`, `c_numel` is the product of the sizes, and
  CONTIGUOUS is set if and only if the elements lie row-major without gaps.
- `storage.users` is the number of TensorImpls that share the Storage.
- `sizes_ref` and `origin`, where they are not None, agree with the sizes and the memory.

Without the GIL a change of a tensor is made in a critical section of its TensorImpl, and what reads
more than one number reads in one, or reads a snapshot (`seen`). One number is read whole outside of
one, by `numel_of` and its kin, and changed by `set_numel` and its kin. The buffer of a Storage is
replaced in a critical section of the Storage, by `install`.

An immutable description of sizes, strides, offset, type and flags, replaced by one pointer, would
do without sections and snapshots. It is one more object for each tensor: a prototype that only
creates and frees it takes 15 % longer for ``from_dlpack(torch)``, 9 % for ``from_dlpack(numpy)``
and 7 % for ``at.empty``, where 5 % are allowed, for what only builds without the GIL need.

The storage may be too small or of another type, since another tensor that shares it may have
changed it. So `data` checks both before each access.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bridge.c10.array_ref cimport ArrayRef, array_ref_of
from bridge.c10.device cimport device_of
from bridge.c10.dims cimport require_numel
from bridge.c10.layout cimport (
    checked_mul,
    contiguous_strides,
    extent,
    is_contiguous,
)
from bridge.c10.python_api cimport make_immortal, set_word32
from bridge.c10.slots cimport (
    MAX_CACHED,
    clear_weakrefs,
    dealloc_of,
    dealloc_function,
    forbid_calling,
    refcount_of,
    revive,
    set_dealloc,
    track,
    type_of,
    untrack,
)
from bridge.c10.storage cimport (
    BORROWED,
    EXTERNAL,
    OBJECTS,
    READONLY,
    Storage,
    add_users,
    allocate_buffer,
    begin_of,
    flags_of,
    install,
    nbytes_of,
    new_storage,
    owner_of,
    share_buffer,
    storage_type,
)
from bridge.c10.type_meta cimport TypeMeta, undefined_type

from bridge.c10.errors import EnforceBufferError, EnforceNotMet


@cython.freelist(64)
@cython.no_gc_clear
cdef class TensorImpl:
    """Sizes, strides, element type and a shared Storage.

    Returned by a wrapper's ``unsafeGetTensorImpl()``. Two wrappers of one TensorImpl
    see each other's data and metadata.

    Follows c10::TensorImpl, c10/core/TensorImpl.h, PyTorch 1.8.1.
    """

    # no_gc_clear: `_dealloc` below still needs the Storage, to count its users. A reference cycle
    # is broken at the wrapper or at the framework's tensor instead.

    cdef int64_t* c_strides(self) noexcept:
        return self.c_sizes + self.ndim

    cdef int set_ndim(self, int ndim) except -1:
        """Allocate `ndim` sizes and strides; their values are not set. Raises MemoryError."""
        cdef int64_t* block
        if ndim == self.ndim and self.c_sizes != NULL:
            return 0
        if ndim <= INLINE_NDIM:
            block = self.inline
        else:
            block = <int64_t*>malloc(2 * <size_t>ndim * sizeof(int64_t))
            if block == NULL:
                raise MemoryError(f"{ndim} dimensions")
        if self.c_sizes != self.inline:
            free(self.c_sizes)
        self.c_sizes = block
        set_word32(&self.ndim, ndim)
        return 0

    cdef int set_contiguous(self, const int64_t* sizes, int ndim, int64_t numel) except -1:
        """Set the sizes, row-major; `numel` is their product."""
        self.set_ndim(ndim)
        memcpy(self.c_sizes, sizes, ndim * sizeof(int64_t))
        contiguous_strides(sizes, self.c_sizes + ndim, ndim)
        set_numel(self, numel)
        set_impl_flags(self, self.flags | CONTIGUOUS)
        self.sizes_ref = None
        self.origin = None
        return 0

    cdef int set_strided(
        self, const int64_t* sizes, const int64_t* strides, int ndim, int64_t numel,
    ) except -1:
        """Set the sizes and strides; `numel` is the product of the sizes."""
        self.set_ndim(ndim)
        memcpy(self.c_sizes, sizes, ndim * sizeof(int64_t))
        memcpy(self.c_sizes + ndim, strides, ndim * sizeof(int64_t))
        set_numel(self, numel)
        if is_contiguous(sizes, strides, ndim):
            set_impl_flags(self, self.flags | CONTIGUOUS)
        else:
            set_impl_flags(self, self.flags & ~CONTIGUOUS)
        self.sizes_ref = None
        self.origin = None
        return 0

    cdef void finish(self) noexcept:
        """Set `c_numel` and CONTIGUOUS after sizes and strides were written into `c_sizes`."""
        cdef int64_t numel = 1
        cdef int i
        for i in range(self.ndim):
            numel *= self.c_sizes[i]
        self.c_numel = numel
        if is_contiguous(self.c_sizes, self.c_sizes + self.ndim, self.ndim):
            self.flags |= CONTIGUOUS
        else:
            self.flags &= ~<uint8_t>CONTIGUOUS

    cdef int set_described(
        self, const int64_t* sizes, const int64_t* strides, int ndim,
    ) except -1:
        """Set the sizes and strides of a new tensor, without checks: the source is trusted."""
        cdef int64_t numel = 1
        cdef int64_t step = 1
        cdef bint contiguous = True
        cdef int i
        self.set_ndim(ndim)
        for i in range(ndim - 1, -1, -1):
            self.c_sizes[i] = sizes[i]
            self.c_sizes[ndim + i] = strides[i]
            numel *= sizes[i]
            if sizes[i] != 1:
                if strides[i] != step:
                    contiguous = False
                step *= sizes[i]
        self.c_numel = numel
        if contiguous or numel == 0:
            self.flags |= CONTIGUOUS
        return 0

    cdef int set_storage(self, Storage storage) except -1:
        """Share `storage` instead of the present one; the caller sets the offset.

        The caller also keeps the present one until the change is complete (`former`).
        """
        cdef Storage old
        add_users(&storage.users, 1)
        old = exchange_storage(self, storage)
        self.origin = None
        if old is not None:
            add_users(&old.users, -1)
        return 0

    cdef int require_defined(self, str caller) except -1:
        """Raise EnforceBufferError if the tensor is undefined."""
        if is_undefined(self):
            raise EnforceBufferError(
                "The tensor is undefined. Create it with a device, as in caffe2.Tensor('cpu'), "
                "or with caffe2.ReinitializeTensor.", caller, condition="defined()")
        return 0

    cdef bint storage_initialized(self) noexcept:
        """Return whether there is memory for the elements, or none is needed."""
        lock_object(self)
        cdef bint found = self.c_numel == 0 or pointer(<void**>&self.storage.data) != NULL
        unlock_object()
        return found

    cdef char* data(self, str caller) except? NULL:
        """Return the address of the first element after checking that all elements can be read.

        NULL if there are no elements and nothing is allocated.

        Raises EnforceBufferError: undefined, no type, not allocated, borrowed memory that is gone,
        or a storage that another tensor has made too small or filled with another type.
        """
        cdef Storage storage
        cdef char* begin
        cdef char* found
        if FREE_THREADED and not impl_flags(self) & (SNAPSHOT | CONTIGUOUS):
            return snapshot(self).data(caller)      # whose sizes stay
        storage = storage_of(self)
        if storage is None:
            self.require_defined(caller)
        if flags_of(storage) & BORROWED:
            storage.check()
        if FREE_THREADED:
            # Another thread may install a buffer meanwhile, whose size it sets last. A lock would
            # let go of those that the caller has: critical sections do, when one has to wait.
            while True:
                begin = begin_of(storage)
                found = checked_data(self, storage, caller)
                if begin_of(storage) == begin:
                    return found
        return checked_data(self, storage, caller)

    cdef object held(self, char** data, str caller):
        """Return the owner of the memory, which keeps it, and set `data` to what `data` returns.

        For what reads or writes elements itself; an address that is handed out is retained, too
        (`retained_owner`). None: there is no memory.
        """
        cdef Storage storage
        while True:
            data[0] = self.data(caller)
            storage = storage_of(self)
            owner = owner_of(storage)
            # read until the two agree, as another thread may replace the buffer between them
            if not FREE_THREADED or (
                    self.data(caller) == data[0] and is_storage(self, storage)
                    and owner_of(storage) is owner):
                return owner

    cdef int writable(self, str caller) except -1:
        """Raise EnforceNotMet if the memory is read-only."""
        if not is_undefined(self) and storage_flags(self) & READONLY:
            raise EnforceNotMet(
                "The memory is read-only. Write to a copy: clone().", caller, condition="!readonly")
        return 0

    cdef ArrayRef sizes_view(self):
        """Return the sizes; the same object until they change."""
        with cython.critical_section(self):
            if self.sizes_ref is None:
                self.sizes_ref = array_ref_of(self.c_sizes, self.ndim)
            return self.sizes_ref

    @cython.critical_section
    cdef ArrayRef strides_view(self):
        """Return the strides, in a new ArrayRef."""
        return array_ref_of(self.c_strides(), self.ndim)

    def defined(self) -> bool:
        """Return whether there is a storage; False for UndefinedTensorImpl.singleton()."""
        return not is_undefined(self)

    def dim(self) -> int:
        """Return the number of dimensions."""
        self.require_defined("TensorImpl.dim")
        return ndim_of(self)

    def numel(self) -> int:
        """Return the number of elements, the product of the sizes."""
        self.require_defined("TensorImpl.numel")
        return numel_of(self)

    def sizes(self) -> ArrayRef:
        """Return the sizes, in elements; the ArrayRef does not change with the tensor."""
        self.require_defined("TensorImpl.sizes")
        return self.sizes_view()

    def strides(self) -> ArrayRef:
        """Return the strides, in elements; the ArrayRef does not change with the tensor."""
        self.require_defined("TensorImpl.strides")
        return self.strides_view()

    def storage_offset(self) -> int:
        """Return the number of elements from the beginning of the Storage to the first one."""
        self.require_defined("TensorImpl.storage_offset")
        return offset_of(self)

    def is_contiguous(self) -> bool:
        """Return whether the elements lie row-major without gaps."""
        self.require_defined("TensorImpl.is_contiguous")
        return is_contiguous_now(self)

    def dtype(self) -> TypeMeta:
        """Return the TypeMeta of the elements; without a type the undefined one, which is False."""
        return <TypeMeta>dtype_of(self)

    def device(self) -> Device:
        """Return the Device that the memory is on, or will be."""
        cdef Storage storage = storage_of(self)
        if storage is None:
            self.require_defined("TensorImpl.device")
        return device_of(storage.device_type, storage.device_index)

    def get_storage(self) -> Storage:
        """Return the Storage, shared and not copied."""
        self.require_defined("TensorImpl.storage")
        return storage_of(self)

    def owns_memory(self) -> bool:
        """Return whether the buffer came from an Allocator of the bridge, not from outside."""
        cdef Storage storage = storage_of(self)
        return storage is not None and begin_of(storage) != NULL \
            and not flags_of(storage) & EXTERNAL

    def __repr__(self):
        if is_undefined(self):
            return "UndefinedTensorImpl"
        return (f"TensorImpl(sizes={self.sizes().vec()}, dtype={self.dtype()}, "
                f"device='{self.device()}')")


@cython.final
cdef class UndefinedTensorImpl(TensorImpl):
    """The TensorImpl of an undefined tensor, a singleton.

    Follows c10::UndefinedTensorImpl, c10/core/UndefinedTensorImpl.h, PyTorch 1.8.1.
    """

    @staticmethod
    def singleton() -> TensorImpl:
        """Return the only UndefinedTensorImpl."""
        return undefined_impl

    def __reduce__(self) -> tuple[Any, ...]:
        return UndefinedTensorImpl.singleton, ()


# tp_dealloc of TensorImpl, which keeps pairs of a TensorImpl and its Storage (see slots.pxd).

cdef dealloc_function _generated_dealloc = dealloc_of(TensorImpl)
cdef PyTypeObject* _paired_type = <PyTypeObject*><PyObject*>TensorImpl
cdef (PyObject*)[64] _pairs     # MAX_CACHED of them
cdef int _n_pairs = 0


cdef void _dealloc(PyObject* dying) noexcept:
    # Borrowed pointers only: a new reference to the object would deallocate it twice.
    cdef PyObject* storage = <PyObject*>(<TensorImpl>dying).storage
    if (<TensorImpl>dying).c_sizes != (<TensorImpl>dying).inline:
        free((<TensorImpl>dying).c_sizes)
        (<TensorImpl>dying).c_sizes = NULL
        (<TensorImpl>dying).ndim = 0
    if storage != <PyObject*>None and not (<TensorImpl>dying).flags & SNAPSHOT:
        add_users(&(<Storage>storage).users, -1)
        if type_of(dying) == _paired_type:
            # Before the number of pairs is read: the callback of a weak reference runs Python,
            # which may deallocate other tensors.
            untrack(dying)
            clear_weakrefs(dying)
            if refcount_of(storage) == 1 and _n_pairs < MAX_CACHED:
                _keep_pair(dying, storage)
                return
    _generated_dealloc(dying)


cdef void _keep_pair(PyObject* dying, PyObject* storage) noexcept:
    global _n_pairs
    untrack(storage)
    # What the two refer to is released on return, when the pair is complete: that may run Python
    # that creates tensors.
    _owner, _base = (<Storage>storage).ctx, (<Storage>storage).base
    _origin = (<TensorImpl>dying).origin
    (<Storage>storage).clear()
    (<TensorImpl>dying).origin = None
    (<TensorImpl>dying).sizes_ref = None
    (<TensorImpl>dying).offset = 0
    (<TensorImpl>dying).flags = 0
    _pairs[_n_pairs] = dying
    _n_pairs += 1


cdef char* checked_data(TensorImpl self, Storage storage, str caller) except? NULL:
    """Return what `TensorImpl.data` returns; `storage` is that of `self`, checked if BORROWED.

    No other thread changes the sizes of `self` meanwhile, unless it is row-major.
    """
    cdef PyObject* dtype = dtype_of(self)
    cdef int64_t numel = numel_of(self)
    cdef int64_t offset = offset_of(self)
    cdef int64_t nbytes = nbytes_of(storage)
    cdef char* begin = begin_of(storage)
    cdef int64_t low, high, bytes_to_end
    if dtype == <PyObject*>undefined_type:
        raise EnforceBufferError(
            "The tensor has no element type yet; call mutable_data(T) first.", caller,
            condition="dtype_initialized()")
    if numel == 0:
        if begin == NULL:
            return NULL
        # unsigned: an offset may be anything where nothing is read
        return <char*>(
            <uintptr_t>begin + <uintptr_t>offset * <uintptr_t>(<TypeMeta>dtype).itemsize)
    if begin == NULL:
        raise EnforceBufferError(
            "The tensor is not allocated: it was resized, freed, or never allocated. "
            "Call mutable_data(T) first.", caller, condition="storage_initialized()")
    if is_contiguous_now(self):
        # The common case, without a function call; below 2**56 the product does not overflow.
        if offset == 0 and dtype == storage_type(storage) \
                and numel < <int64_t>1 << 56 and numel * (<TypeMeta>dtype).itemsize <= nbytes:
            return begin
        low = 0
        high = numel - 1
    elif extent(self.c_sizes, self.c_sizes + self.ndim, self.ndim, &low, &high) < 0:
        low, high = 0, INT64_MAX - 1        # past the end of any storage
    bytes_to_end = checked_mul(offset + high + 1, (<TypeMeta>dtype).itemsize) \
        if high < INT64_MAX - offset else -1
    if offset + low < 0 or bytes_to_end < 0 or bytes_to_end > nbytes:
        raise EnforceBufferError(
            f"The tensor reaches {bytes_to_end} bytes into a storage of "
            f"{nbytes}: another tensor that shares the storage has changed it. "
            "Call Resize and mutable_data(T), or ShareData again.", caller,
            condition="nbytes() <= storage().nbytes()")
    if dtype != storage_type(storage) and not (
            (<TypeMeta>dtype).c_is_pod and not flags_of(storage) & OBJECTS):
        raise EnforceBufferError(
            f"The tensor is of {<TypeMeta>dtype}, but another tensor that shares its storage "
            f"has filled it with {<TypeMeta>storage_type(storage)}. Call mutable_data(T) first.",
            caller, condition="dtype() == storage().dtype()")
    return begin + offset * (<TypeMeta>dtype).itemsize


set_dealloc(TensorImpl, _dealloc)


forbid_calling(TensorImpl)
forbid_calling(UndefinedTensorImpl)


cdef TensorImpl new_pair(int32_t device_type, int32_t device_index, TypeMeta dtype):
    """Return a TensorImpl with a Storage of its own, both of type `dtype`.

    The caller sets memory and sizes.
    """
    global _n_pairs
    cdef TensorImpl impl
    cdef Storage storage
    if _n_pairs == 0:
        impl = new_impl(new_storage(device_type, device_index), dtype)
        impl.storage.c_dtype = dtype
        return impl
    _n_pairs -= 1
    impl = <TensorImpl>revive(_pairs[_n_pairs])
    storage = impl.storage
    track(<PyObject*>storage)
    storage.users = 1
    storage.device_type = device_type
    storage.device_index = device_index
    if storage.c_dtype is not dtype:
        storage.c_dtype = dtype
    if impl.c_dtype is not dtype:
        impl.c_dtype = dtype
    return impl


@cython.critical_section
cdef TensorImpl snapshot(TensorImpl source):
    """Return a TensorImpl with the storage and the metadata that `source` has now.

    It is not counted among those that share the Storage, and other threads do not change it.
    """
    cdef TensorImpl impl = TensorImpl.__new__(TensorImpl)
    impl.storage = source.storage
    impl.c_dtype = source.c_dtype
    impl.origin = source.origin
    impl.sizes_ref = source.sizes_ref
    impl.offset = source.offset
    impl.set_ndim(source.ndim)
    memcpy(impl.c_sizes, source.c_sizes, 2 * source.ndim * sizeof(int64_t))
    impl.c_numel = source.c_numel
    impl.flags = source.flags | SNAPSHOT
    return impl


cdef TensorImpl undefined_impl = UndefinedTensorImpl.__new__(UndefinedTensorImpl)
undefined_impl.c_dtype = undefined_type
undefined_impl.set_ndim(0)
make_immortal(undefined_impl)


cdef TensorImpl new_impl(Storage storage, TypeMeta dtype):
    """Return a TensorImpl over `storage`; the caller sets sizes and strides at once."""
    cdef TensorImpl impl = TensorImpl.__new__(TensorImpl)
    impl.storage = storage
    add_users(&storage.users, 1)
    impl.c_dtype = dtype
    return impl


cdef TensorImpl like(TensorImpl source):
    """Return a TensorImpl over the same Storage with the same type and offset, without sizes."""
    cdef TensorImpl impl = new_impl(source.storage, source.c_dtype)
    impl.offset = source.offset
    return impl


cdef TensorImpl allocated(
    const int64_t* sizes, int ndim, TypeMeta dtype, int32_t device_type, int32_t device_index,
    str caller,
):
    """Return a new TensorImpl with memory of its own, not initialised if the type is POD.

    Raises EnforceNotMet: invalid sizes, no type, or no allocator for the device. MemoryError.
    """
    cdef int64_t numel = require_numel(sizes, ndim, caller)
    cdef char* data = NULL
    cdef TensorImpl impl = new_pair(device_type, device_index, dtype)
    # Before the allocator, which may run Python: `sizes` may belong to a tensor that it resizes.
    impl.set_contiguous(sizes, ndim, numel)
    ctx = allocate_buffer(device_type, device_index, dtype, numel, &data, caller)
    install(impl.storage, ctx, data, dtype, numel * dtype.itemsize, 0)
    return impl


def unchanging(TensorImpl impl) -> TensorImpl:
    """Return `impl`, or a copy of its metadata where other threads may change it (see `seen`)."""
    return seen(impl)


def over_storage(Storage storage, TypeMeta dtype, int64_t n) -> TensorImpl:
    """Return a one-dimensional TensorImpl over the first `n` elements of a Storage."""
    cdef TensorImpl impl = new_impl(storage, dtype)
    impl.set_contiguous(&n, 1, n)
    return impl


def detached(TensorImpl source) -> TensorImpl:
    """Return a TensorImpl of the same memory in another Storage, so not a share of the one."""
    cdef TensorImpl impl
    source = seen(source)
    source.storage.retain()
    impl = new_pair(source.storage.device_type, source.storage.device_index, source.c_dtype)
    share_buffer(impl.storage, source.storage, 0)
    impl.offset = source.offset
    impl.set_strided(source.c_sizes, source.c_strides(), source.ndim, source.c_numel)
    return impl
