# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, auto_pickle=False
"""TensorImpl: the one tensor behind both wrappers.

Its states, as in c10/core/TensorImpl.h, PyTorch 1.8.1:

    t = caffe2.Tensor([2, 3], "cpu")    sized;    no type, no memory
    t.mutable_data("float32")           sized;    float32, allocated
    t.Resize(4, 5)                      resized;  float32, no memory: it did not fit
    t.mutable_data("float32")           allocated again

Invariants: sizes are not negative and their product fits an int64; sizes and
strides have `ndim` values each; `storage.users` counts the TensorImpls that hold
the Storage; `sizes_ref` and `origin`, where not None, tell the truth. Nothing is
promised about the storage being large enough, since whoever shares it may have
changed it: `data` checks before every access.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bridge.c10.array_ref cimport ArrayRef, array_ref_of
from bridge.c10.device cimport device_of
from bridge.c10.layout cimport (
    checked_mul,
    checked_numel,
    contiguous_strides,
    extent,
    is_contiguous,
)
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
    READONLY,
    Elements,
    Storage,
    allocate_buffer,
    install,
    new_storage,
)
from bridge.c10.type_meta cimport TypeMeta, undefined_type

from bridge.c10.errors import (
    EnforceBufferError,
    EnforceIndexError,
    EnforceNotMet,
    EnforceValueError,
)


@cython.freelist(64)
@cython.no_gc_clear
cdef class TensorImpl:
    """Sizes, strides, type, and a share of a Storage; what both wrappers hold.

    Got from a wrapper's ``unsafeGetTensorImpl()``. Two wrappers of one TensorImpl
    see each other's data and metadata.

    Follows c10::TensorImpl, c10/core/TensorImpl.h, PyTorch 1.8.1.
    """

    # no_gc_clear: the end (`_end` below) must still see the Storage whose share it gives
    # up. A cycle through here is broken at the wrapper or at the framework's tensor.

    cdef int64_t* c_strides(self) noexcept:
        return self.c_sizes + self.ndim

    cdef int set_ndim(self, int ndim) except -1:
        """Make room for `ndim` sizes and strides, whose values are not set then."""
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
        self.ndim = ndim
        return 0

    cdef int set_contiguous(self, const int64_t* sizes, int ndim, int64_t numel) except -1:
        """New sizes, row-major; `numel` is their product."""
        self.set_ndim(ndim)
        memcpy(self.c_sizes, sizes, ndim * sizeof(int64_t))
        contiguous_strides(sizes, self.c_sizes + ndim, ndim)
        self.c_numel = numel
        self.flags |= CONTIGUOUS
        self.sizes_ref = None
        self.origin = None
        return 0

    cdef int set_strided(
        self, const int64_t* sizes, const int64_t* strides, int ndim, int64_t numel,
    ) except -1:
        """New sizes and strides; `numel` is the product of the sizes."""
        self.set_ndim(ndim)
        memcpy(self.c_sizes, sizes, ndim * sizeof(int64_t))
        memcpy(self.c_sizes + ndim, strides, ndim * sizeof(int64_t))
        self.c_numel = numel
        if is_contiguous(sizes, strides, ndim):
            self.flags |= CONTIGUOUS
        else:
            self.flags &= ~<uint8_t>CONTIGUOUS
        self.sizes_ref = None
        self.origin = None
        return 0

    cdef void finish(self) noexcept:
        """Set what follows from sizes and strides that were written in place."""
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
        """Sizes and strides of a new tensor, from a source that is to be believed."""
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
        """Share `storage` instead of the one held; the offset is the caller's to set."""
        cdef Storage old = self.storage
        storage.users += 1
        self.storage = storage
        self.origin = None
        if old is not None:
            old.users -= 1
        return 0

    cdef int require_defined(self, str caller) except -1:
        if self.storage is None:
            raise EnforceBufferError(
                "The tensor is undefined. Make it with a device, as in caffe2.Tensor('cpu'), "
                "or with caffe2.ReinitializeTensor.", caller, condition="defined()")
        return 0

    cdef bint storage_initialized(self) noexcept:
        return self.c_numel == 0 or self.storage.data != NULL

    cdef char* data(self, str caller) except? NULL:
        """The address of the first element, all of them being there to read.

        NULL where there are no elements and nothing is allocated.
        """
        cdef Storage storage = self.storage
        cdef int64_t low, high, bytes_to_end
        if storage is None:
            self.require_defined(caller)
        if storage.flags & BORROWED:
            storage.check()
        if self.c_dtype is undefined_type:
            raise EnforceBufferError(
                "The tensor has no element type yet; call mutable_data(T) first.", caller,
                condition="dtype_initialized()")
        if self.c_numel == 0:
            if storage.data == NULL:
                return NULL
            return storage.data + self.offset * self.c_dtype.itemsize
        if storage.data == NULL:
            raise EnforceBufferError(
                "The tensor is not allocated: it was resized, freed, or only sized so far. "
                "Call mutable_data(T) first.", caller, condition="storage_initialized()")
        if self.flags & CONTIGUOUS:
            # What nearly all tensors are, without a call; the product of such a number fits.
            if self.offset == 0 and self.c_dtype is storage.c_dtype \
                    and self.c_numel < <int64_t>1 << 56 \
                    and self.c_numel * self.c_dtype.itemsize <= storage.c_nbytes:
                return storage.data
            low = 0
            high = self.c_numel - 1
        elif extent(self.c_sizes, self.c_sizes + self.ndim, self.ndim, &low, &high) < 0:
            low, high = 0, INT64_MAX - 1        # past the end of any storage
        bytes_to_end = checked_mul(self.offset + high + 1, self.c_dtype.itemsize) \
            if high < INT64_MAX - self.offset else -1
        if self.offset + low < 0 or bytes_to_end < 0 or bytes_to_end > storage.c_nbytes:
            raise EnforceBufferError(
                f"The tensor reaches {bytes_to_end} bytes into a storage of "
                f"{storage.c_nbytes}: another tensor that shares the storage has changed it. "
                "Call Resize and mutable_data(T), or ShareData again.", caller,
                condition="nbytes() <= storage().nbytes()")
        if self.c_dtype is not storage.c_dtype and not (
                self.c_dtype.c_is_pod and type(storage.ctx) is not Elements):
            raise EnforceBufferError(
                f"The tensor is of {self.c_dtype}, but another tensor that shares its storage "
                f"has filled that with {storage.c_dtype}. Call mutable_data(T) first.", caller,
                condition="dtype() == storage().dtype()")
        return storage.data + self.offset * self.c_dtype.itemsize

    cdef int writable(self, str caller) except -1:
        if self.storage is not None and self.storage.flags & READONLY:
            raise EnforceNotMet(
                "The memory is read-only. Write to a copy: clone().", caller, condition="!readonly")
        return 0

    cdef ArrayRef sizes_view(self):
        if self.sizes_ref is None:
            self.sizes_ref = array_ref_of(self.c_sizes, self.ndim)
        return self.sizes_ref

    def defined(self):
        """Whether this is a tensor at all; False for UndefinedTensorImpl.singleton()."""
        return self.storage is not None

    def dim(self):
        """Number of dimensions."""
        self.require_defined("TensorImpl.dim")
        return self.ndim

    def numel(self):
        """Number of elements, the product of the sizes."""
        self.require_defined("TensorImpl.numel")
        return self.c_numel

    def sizes(self):
        """The sizes, in elements, as an ArrayRef that keeps its values."""
        self.require_defined("TensorImpl.sizes")
        return self.sizes_view()

    def strides(self):
        """The strides, in elements, as an ArrayRef that keeps its values."""
        self.require_defined("TensorImpl.strides")
        return array_ref_of(self.c_strides(), self.ndim)

    def storage_offset(self):
        """Elements from the beginning of the Storage to the first element."""
        self.require_defined("TensorImpl.storage_offset")
        return self.offset

    def is_contiguous(self):
        """Whether the elements lie row-major without gaps."""
        self.require_defined("TensorImpl.is_contiguous")
        return (self.flags & CONTIGUOUS) != 0

    def dtype(self):
        """The TypeMeta of the elements; undefined, which is False, before there is one."""
        return self.c_dtype

    def device(self):
        """The Device that the memory is on."""
        self.require_defined("TensorImpl.device")
        return device_of(self.storage.device_type, self.storage.device_index)

    def get_storage(self):
        """The Storage, shared and not copied."""
        self.require_defined("TensorImpl.storage")
        return self.storage

    def owns_memory(self):
        """Whether the buffer came from an Allocator of the bridge, not from outside."""
        return (self.storage is not None and self.storage.data != NULL
                and not self.storage.flags & EXTERNAL)

    def __repr__(self):
        if self.storage is None:
            return "UndefinedTensorImpl"
        return (f"TensorImpl(sizes={self.sizes().vec()}, dtype={self.c_dtype}, "
                f"device='{self.device()}')")


@cython.final
cdef class UndefinedTensorImpl(TensorImpl):
    """The TensorImpl of a tensor that is not one; there is a single object of it.

    Follows c10::UndefinedTensorImpl, c10/core/UndefinedTensorImpl.h, PyTorch 1.8.1.
    """

    @staticmethod
    def singleton():
        """The one undefined TensorImpl."""
        return undefined_impl

    def __reduce__(self):
        return UndefinedTensorImpl.singleton, ()


# tp_dealloc of TensorImpl, which keeps pairs of a TensorImpl and its Storage (see slots.pxd).

cdef dealloc_function _generated_end = dealloc_of(TensorImpl)
cdef PyTypeObject* _paired_type = <PyTypeObject*><PyObject*>TensorImpl
cdef (PyObject*)[64] _pairs     # MAX_CACHED of them
cdef int _n_pairs = 0


cdef void _end(PyObject* dying) noexcept:
    # Borrowed all the way: a reference to the dying object would end it twice.
    cdef PyObject* storage = <PyObject*>(<TensorImpl>dying).storage
    if (<TensorImpl>dying).c_sizes != (<TensorImpl>dying).inline:
        free((<TensorImpl>dying).c_sizes)
        (<TensorImpl>dying).c_sizes = NULL
        (<TensorImpl>dying).ndim = 0
    if storage != <PyObject*>None:
        (<Storage>storage).users = (<Storage>storage).users - 1
        if type_of(dying) == _paired_type:
            # Before the pool is looked at: a weak reference may call Python, which lets other
            # tensors end.
            untrack(dying)
            clear_weakrefs(dying)
            if refcount_of(storage) == 1 and _n_pairs < MAX_CACHED:
                _keep_pair(dying, storage)
                return
    _generated_end(dying)


cdef void _keep_pair(PyObject* dying, PyObject* storage) noexcept:
    global _n_pairs
    untrack(storage)
    # What the two held ends last, when the pair is complete: it may run Python that makes
    # tensors.
    _owner = (<Storage>storage).ctx
    _origin = (<TensorImpl>dying).origin
    (<Storage>storage).clear()
    (<TensorImpl>dying).origin = None
    (<TensorImpl>dying).sizes_ref = None
    (<TensorImpl>dying).offset = 0
    (<TensorImpl>dying).flags = 0
    _pairs[_n_pairs] = dying
    _n_pairs += 1


set_dealloc(TensorImpl, _end)


forbid_calling(TensorImpl)
forbid_calling(UndefinedTensorImpl)


cdef TensorImpl new_pair(int32_t device_type, int32_t device_index, TypeMeta dtype):
    """A TensorImpl and its Storage, of one type; memory and sizes are the caller's to set."""
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


cdef TensorImpl undefined_impl = UndefinedTensorImpl.__new__(UndefinedTensorImpl)
undefined_impl.c_dtype = undefined_type
undefined_impl.set_ndim(0)


cdef TensorImpl new_impl(Storage storage, TypeMeta dtype):
    """A TensorImpl over `storage`; sizes and strides are the caller's to set at once."""
    cdef TensorImpl impl = TensorImpl.__new__(TensorImpl)
    impl.storage = storage
    storage.users += 1
    impl.c_dtype = dtype
    return impl


cdef TensorImpl like(TensorImpl source):
    """Another TensorImpl over the same Storage with the same type and offset; no sizes yet."""
    cdef TensorImpl impl = new_impl(source.storage, source.c_dtype)
    impl.offset = source.offset
    return impl


cdef int64_t require_numel(const int64_t* sizes, int ndim, str caller) except -1:
    """The number of elements; EnforceNotMet for sizes that no tensor can have."""
    cdef int64_t numel = checked_numel(sizes, ndim)
    cdef int i
    if numel < 0:
        shown = [sizes[i] for i in range(ndim)]
        for i in range(ndim):
            if sizes[i] < 0:
                raise EnforceValueError(
                    f"Sizes are not negative, as {sizes[i]} in {shown} is.",
                    caller, condition="size >= 0")
        raise EnforceValueError(
            f"The sizes {shown} make more elements than an int64 counts.", caller,
            condition="numel() < 2**63")
    return numel


cdef int64_t wrap_dim(int64_t dim, int64_t ndim, str caller) except -1:
    """`dim` counted from the front; a tensor without dimensions is taken to have one."""
    cdef int64_t n = ndim if ndim > 0 else 1
    if dim < -n or dim >= n:
        raise EnforceIndexError(
            f"Dimension {dim} is out of range for {ndim} dimensions: {-n} to {n - 1}.", caller,
            condition="-dim() <= dim < dim()")
    return dim + n if dim < 0 else dim


cdef TensorImpl allocated(
    const int64_t* sizes, int ndim, TypeMeta dtype, int32_t device_type, int32_t device_index,
    str caller,
):
    """A new TensorImpl with memory of its own, uninitialised where the type is POD."""
    cdef int64_t numel = require_numel(sizes, ndim, caller)
    cdef char* data = NULL
    cdef TensorImpl impl = new_pair(device_type, device_index, dtype)
    # Before the allocator, which may run Python: the sizes may be those of a tensor it resizes.
    impl.set_contiguous(sizes, ndim, numel)
    ctx = allocate_buffer(device_type, device_index, dtype, numel, &data, caller)
    install(impl.storage, ctx, data, dtype, numel * dtype.itemsize, 0)
    return impl


def wrapped_dim(dim, ndim, caller):
    """`dim` counted from the front; EnforceNotMet, also an IndexError, where it is none."""
    return wrap_dim(dim, ndim, caller)


def over_storage(Storage storage, TypeMeta dtype, int64_t n):
    """A one-dimensional TensorImpl over the first `n` elements of a Storage."""
    cdef TensorImpl impl = new_impl(storage, dtype)
    impl.set_contiguous(&n, 1, n)
    return impl


def detached(TensorImpl source):
    """The same memory through a Storage apart: no share of the one of `source`."""
    cdef Storage now = source.storage
    cdef TensorImpl impl
    now.pin()
    impl = new_pair(now.device_type, now.device_index, source.c_dtype)
    install(impl.storage, now.ctx, now.data, now.c_dtype, now.c_nbytes, now.flags)
    impl.offset = source.offset
    impl.set_strided(source.c_sizes, source.c_strides(), source.ndim, source.c_numel)
    return impl
