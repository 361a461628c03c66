# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Storage: the memory that tensors share.

Note: Who owns the memory
-------------------------
There are two levels. TensorImpls share a Storage, and a Storage refers to a buffer. `ctx` owns the
buffer and frees it when the last reference to `ctx` goes:

    ctx              the buffer is                     freed by
    DataPtr          allocated by a c10.Allocator      that Allocator
    Elements         Python objects (non-POD)          Python
    ManagedTensor    imported through DLPack           the producer's deleter
    ExternalPtr      from outside, an address          the caller's deleter
    anything else    of a framework's object           that object

An export, such as a NumPy view or a DLPack capsule, keeps `ctx` and not the Storage. So it stays
valid when the Storage gets another buffer, and does not count as a share (`use_count`).

Note: Borrowed memory
---------------------
A torch tensor can be resized or given other memory while the bridge uses it. Its Storage is
BORROWED: `ctx` is that tensor, and `check` compares addresses before each access. `retain`, called
before an address is exported, replaces `ctx` by a tensor of the bridge's own over the same
framework storage, so the memory stays as long as `ctx` does. In CPU memory the Storage is not
BORROWED any more; elsewhere torch can still resize the storage, so it is BORROWED and RETAINED, and
is checked before each access.

Note: Inversion
---------------
How to `check`, `retain` and `lead`, only the framework's adapter knows, and adapters are above c10.
`set_borrow_hooks` is called by bridge.exchange.torch_import at import, before any Storage can be
BORROWED or LENT.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uintptr_t

from bridge.c10.allocator cimport DataPtr, allocator_of
from bridge.c10.device cimport device_of
from bridge.c10.python_api cimport lock_object, unlock_object
from bridge.c10.slots cimport forbid_calling
from bridge.c10.type_meta cimport (
    TypeMeta,
    as_type,
    string_type,
    undefined_type,
)
from bridge.dlpack.abi cimport DL_CPU

from bridge.c10.errors import (
    EnforceBufferError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)

cdef storage_hook _check_borrowed = NULL
cdef storage_hook _retain_borrowed = NULL
cdef lead_hook _lead_of_lent = NULL


cdef void set_borrow_hooks(storage_hook check, storage_hook retain, lead_hook lead):
    """Set how `Storage.check`, `retain` and `lead` treat a framework's memory (Note: Inversion).
    """
    global _check_borrowed, _retain_borrowed, _lead_of_lent
    _check_borrowed = check
    _retain_borrowed = retain
    _lead_of_lent = lead


# trashcan: an owner may be a view of another tensor, whose owner is one of a third, and so on; from
# some depth on CPython frees them one after the other, so that the C stack is enough.
@cython.final
@cython.freelist(64)
@cython.trashcan(True)
cdef class Storage:
    """Memory on one device and its element type, shared by one or more tensors.

    Returned by a tensor's ``storage()``. Tensors that share it see each other's data.
    Follows c10::Storage, c10/core/Storage.h, PyTorch 1.8.1.

    >>> from bridge import caffe2, c10
    >>> t = caffe2.Tensor([2, 3], "cpu")
    >>> t.storage().nbytes()
    0
    >>> _ = t.mutable_data("float32")
    >>> t.storage().nbytes(), t.storage().use_count(), t.storage().IsType("float32")
    (24, 1, True)
    """

    cdef int check(self) except -1:
        """Raise EnforceBufferError if borrowed memory is gone; called before each access."""
        if flags_of(self) & BORROWED:
            return _check_borrowed(self)
        return 0

    cdef int retain(self) except -1:
        """Keep borrowed memory in place; call before handing out its address. Raises as `check`."""
        if flags_of(self) & BORROWED:
            return _retain_borrowed(self)
        return 0

    cdef int64_t lead(self) except -1:
        """Return how many bytes the framework's storage has before `data`; 0 for other memory.

        Offsets that users see count from there, as the framework's do. Raises as `check`.
        """
        if flags_of(self) & LENT:
            return _lead_of_lent(self)
        return 0

    cdef void clear(self) noexcept:
        """Drop the buffer of a Storage that no other thread uses."""
        self.data = NULL
        self.c_nbytes = 0
        self.flags = 0
        if self.base is not None:
            self.base = None
        self.ctx = None

    def data_ptr(self) -> int:
        """Return the address of the first byte; 0 if nothing is allocated.

        Of an imported torch tensor: the begin of torch's storage.

        Raises EnforceNotMet, also a BufferError: the torch tensor that the memory came from was
        resized or given other memory.
        """
        self.check()
        return <uintptr_t>begin_of(self) - <uintptr_t>self.lead()

    def nbytes(self) -> int:
        """Return the size of the buffer in bytes, used or not.

        Of an imported torch tensor: up to its last element.
        """
        return self.lead() + nbytes_of(self)

    def capacity(self) -> int:
        """Return the same as `nbytes`."""
        return self.nbytes()

    def device(self) -> Device:
        """Return the Device that the memory is on."""
        return device_of(self.device_type, self.device_index)

    def dtype(self) -> TypeMeta:
        """Return the TypeMeta that it was last allocated for; undefined before that."""
        return <TypeMeta>storage_type(self)

    def IsType(self, T: TypeLike) -> bool:
        """Return whether it holds elements of the type that `T` names."""
        return as_type(T) is <TypeMeta>storage_type(self)

    def use_count(self) -> int:
        """Return how many TensorImpls share it. NumPy views and DLPack capsules do not count."""
        return users_of(self)

    def unique(self) -> bool:
        """Return whether only one TensorImpl refers to it."""
        return users_of(self) == 1

    @property
    def readonly(self) -> bool:
        """Whether the memory must not be written."""
        return bool(flags_of(self) & READONLY)

    def is_alias_of(self, other: Storage) -> bool:
        """Return whether `other` is the same Storage."""
        return self is other

    def reset(self) -> None:
        """Drop the buffer; every tensor that shares the Storage is unallocated after that.

        NumPy views and DLPack capsules keep the buffer alive.
        """
        install(self, None, NULL, <TypeMeta>storage_type(self), 0, 0)

    def UniqueStorageShareExternalPointer(
        self, src: int | BufferLike, T: TypeLike, capacity: int, deleter: Deleter | None = None
    ) -> None:
        """Use `capacity` bytes of memory from outside at `src`, as elements of type `T`; no copy.

        `src` is an address on the Storage's device, or a writable buffer, which is kept alive.
        `deleter(address)` is called once, when neither a tensor nor a view needs the memory.

        Raises EnforceNotMet: the Storage is shared (`unique()` is False), the type is not POD, the
        address or the capacity is not valid, the buffer is too small, read-only or not contiguous,
        the memory is not aligned for the type, or a buffer is given for a device.

        Follows StorageImpl::UniqueStorageShareExternalPointer,
        c10/core/StorageImpl.h, PyTorch 1.8.1.
        """
        cdef TypeMeta dtype = as_type(T)
        cdef uintptr_t address
        cdef unsigned char[::1] keep
        caller = "Storage.UniqueStorageShareExternalPointer"
        if users_of(self) != 1:
            raise EnforceNotMet(
                f"{users_of(self)} tensors share the Storage; only a Storage of one tensor takes "
                "external memory. Use a tensor with a Storage of its own.", caller,
                condition="unique()")
        if not dtype.c_is_pod:
            raise EnforceNotMet(
                f"External memory holds POD elements, not {dtype}.", caller,
                condition="T.is_pod")
        nbytes = as_nbytes(capacity, caller)
        deleter = as_deleter(deleter, caller)
        keep = None
        if isinstance(src, int):
            address = as_address(src, caller)
        else:
            if self.device_type != DL_CPU:
                raise EnforceBufferError(
                    f"A buffer is in CPU memory, and the Storage is on {self.device()}.", caller)
            keep = _writable_bytes(src, nbytes, caller)
            address = <uintptr_t><void*>&keep[0] if keep.shape[0] else 0
        if address % <uintptr_t>min(dtype.itemsize, 8) != 0:
            raise EnforceValueError(
                f"The address {address:#x} is not aligned for {dtype}.", caller,
                condition="address % itemsize == 0")
        install(self, external_ptr(<void*>address, keep, deleter),
                <char*>address, dtype, nbytes, EXTERNAL)

    def __reduce_ex__(self, protocol):
        raise TypeError(
            "A Storage cannot be copied or pickled without its tensor; use Clone() or pickle "
            "the tensor.")

    def __bool__(self) -> bool:
        return True

    def __repr__(self):
        return (f"Storage(nbytes={self.nbytes()}, dtype={self.dtype()}, "
                f"device='{self.device()}', use_count={self.use_count()})")


forbid_calling(Storage)


@cython.final
cdef class Elements:
    """The elements of a non-POD buffer: Python objects."""

    def __init__(self):
        raise TypeError("Elements are created with the Storage of a non-POD tensor.")


@cython.final
cdef class ExternalPtr:
    """External memory and the deleter to call when it is no longer used."""

    def __init__(self):
        raise TypeError("An ExternalPtr is created by sharing external memory.")

    def __del__(self):
        # A finaliser and not __dealloc__: in a reference cycle it runs before anything that the
        # deleter refers to is cleared, and only once (PEP 442).
        deleter = self.deleter
        if deleter is not None:
            self.deleter = None
            deleter(<uintptr_t>self.data)


cdef object _writable_bytes(object src, int64_t nbytes, str caller):
    """Return the bytes of a buffer that is writable, contiguous and large enough, or raise."""
    try:
        view = memoryview(src).cast("B")
    except (TypeError, ValueError, BufferError) as error:
        raise EnforceTypeError(
            f"{type(src).__name__} is neither an address nor a contiguous buffer: {error}",
            caller) from error
    if view.readonly:
        raise EnforceTypeError("The buffer is read-only.", caller, condition="!readonly")
    if view.nbytes < nbytes:
        raise EnforceValueError(
            f"The buffer has {view.nbytes} bytes, fewer than the capacity of {nbytes}.", caller,
            condition="capacity <= len(buffer)")
    return view


def as_address(src: object, caller: str) -> int:
    """Return `src` if it is an int that can be an address other than NULL.

    Raises EnforceTypeError: not an int. EnforceValueError: NULL, negative or too large.
    """
    if isinstance(src, bool) or not isinstance(src, int):
        raise EnforceTypeError(f"An address is an int, not {type(src).__name__}.", caller)
    if src <= 0 or src > <uintptr_t>-1:
        raise EnforceValueError(
            f"{src} is not a valid address.", caller, condition="src != nullptr")
    return src


def as_nbytes(nbytes: object, caller: str) -> int:
    """Return `nbytes` if it is an int that is not negative and fits an int64.

    Raises EnforceTypeError: not an int. EnforceValueError: out of range.
    """
    if isinstance(nbytes, bool) or not isinstance(nbytes, int):
        raise EnforceTypeError(
            f"A number of bytes is an int, not {type(nbytes).__name__}.", caller)
    if nbytes < 0 or nbytes > INT64_MAX:
        raise EnforceValueError(
            f"{nbytes} is not a valid number of bytes.", caller, condition="0 <= nbytes < 2**63")
    return nbytes


def as_deleter(deleter: object, caller: str) -> Deleter | None:
    """Return `deleter` if it is callable or None. Raises EnforceTypeError otherwise."""
    if deleter is not None and not callable(deleter):
        raise EnforceTypeError(
            f"A deleter is called with the address; {type(deleter).__name__} is not callable.",
            caller, condition="callable(deleter)")
    return deleter


cdef ExternalPtr external_ptr(void* data, object keep, object deleter):
    cdef ExternalPtr ptr = ExternalPtr.__new__(ExternalPtr)
    ptr.data = data
    ptr.keep = keep
    ptr.deleter = deleter
    return ptr


cdef Storage new_storage(int32_t device_type, int32_t device_index):
    """Return a Storage without memory. Follows Storage::create_legacy, c10/core/Storage.h."""
    cdef Storage storage = Storage.__new__(Storage)
    storage.device_type = device_type
    storage.device_index = device_index
    storage.c_dtype = undefined_type
    return storage


# Lists to multiply at run time. In free-threaded CPython 3.13 a list that is allocated at its full
# length frees memory of another list when its allocation fails.
cdef list _ONE_STRING = [b""]
cdef list _ONE_NONE = [None]


cdef Elements new_elements(TypeMeta dtype, int64_t n):
    """Return `n` new elements of a non-POD type. Raises MemoryError."""
    cdef list items
    cdef int64_t i
    if n > INT64_MAX // 8:
        raise MemoryError(f"{n} elements of {dtype}")
    if dtype is string_type:
        return elements_of(dtype, _ONE_STRING * n)
    cls = dtype.cls
    # Allocate the list first, which may fail, since constructing the elements may take long.
    items = _ONE_NONE * n
    for i in range(n):
        items[i] = cls()
    return elements_of(dtype, items)


cdef Elements elements_of(TypeMeta dtype, list items):
    """Return the elements in `items`, a list that nothing else may use from then on."""
    cdef Elements elements = Elements.__new__(Elements)
    elements.dtype = dtype
    elements.items = items
    return elements


cdef object allocate_buffer(
    int32_t device_type, int32_t device_index, TypeMeta dtype, int64_t numel, char** data,
    str caller,
):
    """Return the owner of a new buffer of `numel` elements; set `data` to its address.

    Changes nothing else, so a tensor is unchanged when this raises. Raises MemoryError;
    EnforceNotMet: no type, non-POD elements on a device, or no allocator for the device.
    """
    cdef DataPtr ptr
    cdef Elements elements
    if dtype.c_is_pod:
        if numel > INT64_MAX // dtype.itemsize:
            raise MemoryError(f"{numel} elements of {dtype} exceed any memory.")
        ptr = allocator_of(device_type, device_index).get(numel * dtype.itemsize)
        if not ptr.allocator.builtin and <uintptr_t>ptr.data % <uintptr_t>min(dtype.itemsize, 8):
            raise EnforceNotMet(
                f"{type(ptr.allocator).__name__}.raw_allocate returned {<uintptr_t>ptr.data:#x}, "
                f"which is not aligned for {dtype}.", caller, condition="address % itemsize == 0")
        data[0] = <char*>ptr.data
        return ptr
    if dtype is undefined_type:
        raise EnforceNotMet(
            "The tensor has no element type yet; call mutable_data(T) first.", caller,
            condition="dtype_initialized()")
    if device_type != DL_CPU:
        raise EnforceNotMet(
            f"Elements of the non-POD type {dtype} are stored on the CPU only.", caller)
    elements = new_elements(dtype, numel)
    data[0] = <char*><void*>elements if numel else NULL
    return elements


cdef int install(
    Storage storage, object ctx, char* data, TypeMeta dtype, int64_t nbytes, int flags,
) except -1:
    """Replace the buffer of `storage`."""
    # The old owner is released last: that may run Python, which must not see a half-set Storage.
    flags = flags | OBJECTS if type(ctx) is Elements else flags & ~OBJECTS
    lock_object(storage)
    old, old_base = storage.ctx, storage.base
    set_size(&storage.c_nbytes, 0)      # until the rest is set; see TensorImpl.data
    storage.ctx = ctx
    storage.base = None
    set_begin(storage, data)
    set_storage_type(storage, dtype)
    set_flags(storage, flags)
    set_size(&storage.c_nbytes, nbytes)
    unlock_object()
    del old, old_base
    return 0


cdef int share_buffer(Storage storage, Storage source, int more_flags) except -1:
    """Replace the buffer of `storage`, new, by that of `source`, which another thread may change.

    more_flags: flags that are set besides those of `source`.
    """
    cdef char* data
    cdef TypeMeta dtype
    cdef int64_t nbytes
    cdef int flags
    ctx, dtype, base = None, None, None
    lock_object(source)
    ctx, data, dtype, base = source.ctx, source.data, source.c_dtype, source.base
    nbytes, flags = source.c_nbytes, source.flags
    unlock_object()
    install(storage, ctx, data, dtype, nbytes, flags | more_flags)
    storage.base = base     # so that the framework sees one storage, too
    return 0
