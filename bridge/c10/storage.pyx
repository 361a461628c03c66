# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, auto_pickle=False
"""Storage: the memory that tensors share, apart from how each of them looks at it.

Two levels of ownership. TensorImpls share a Storage, which may change its
buffer under them (`mutable_data` of another type does). The buffer has an owner
of its own, `ctx`, and everything that was handed out, a NumPy view or a DLPack
capsule, holds that and not the Storage: it stays valid when the Storage moves
on, and does not count as a share.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uintptr_t

from bridge.c10.allocator cimport DataPtr, allocator_of
from bridge.c10.device cimport device_of
from bridge.c10.slots cimport forbid_calling
from bridge.c10.type_meta cimport (
    TypeMeta,
    as_type,
    string_type,
    tensor_type,
    undefined_type,
)
from bridge.dlpack.abi cimport DL_CPU

from bridge.c10.errors import (
    EnforceBufferError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)

# What an adapter does for memory that a framework's tensor holds: tell whether
# it is still where it was, and keep it there for good.
cdef storage_hook _check_borrowed = NULL
cdef storage_hook _pin_borrowed = NULL


cdef void set_borrow_hooks(storage_hook check, storage_hook pin):
    global _check_borrowed, _pin_borrowed
    _check_borrowed = check
    _pin_borrowed = pin


@cython.final
@cython.freelist(64)
cdef class Storage:
    """Memory on one device, its element type, and who shares it.

    Got from a tensor's ``storage()``. Tensors that share it see each other's
    data. Follows c10::Storage, c10/core/Storage.h, PyTorch 1.8.1.

    >>> from bridge import caffe2, c10
    >>> t = caffe2.Tensor([2, 3], "cpu")
    >>> t.storage().nbytes()
    0
    >>> _ = t.mutable_data("float32")
    >>> t.storage().nbytes(), t.storage().use_count(), t.storage().IsType("float32")
    (24, 1, True)
    """

    cdef int check(self) except -1:
        """Before memory is read or written here: is it still there?"""
        if self.flags & BORROWED:
            return _check_borrowed(self)
        return 0

    cdef int pin(self) except -1:
        """Before memory is handed out: see that it stays."""
        if self.flags & BORROWED:
            return _pin_borrowed(self)
        return 0

    cdef void clear(self) noexcept:
        self.data = NULL
        self.c_nbytes = 0
        self.flags = 0
        self.ctx = None

    def data_ptr(self):
        """The address of the first byte; 0 where nothing is allocated."""
        self.check()
        return <uintptr_t>self.data

    def nbytes(self):
        """Bytes in the buffer, used or not."""
        return self.c_nbytes

    def capacity(self):
        """The same as `nbytes`."""
        return self.c_nbytes

    def device(self):
        """The Device that the memory is on."""
        return device_of(self.device_type, self.device_index)

    def dtype(self):
        """The TypeMeta of the elements it was allocated for; undefined before that."""
        return self.c_dtype

    def IsType(self, T):
        """Whether it holds elements of the type that `T` names."""
        return as_type(T) is self.c_dtype

    def use_count(self):
        """How many TensorImpls share it. Views of the memory do not count."""
        return self.users

    def unique(self):
        """Whether one TensorImpl alone holds it."""
        return self.users == 1

    @property
    def readonly(self):
        """Whether the memory must not be written."""
        return bool(self.flags & READONLY)

    def is_alias_of(self, other):
        """Whether `other` is the same Storage."""
        return self is other

    def reset(self):
        """Let the buffer go; every tensor that shares the Storage is unallocated then.

        Views handed out keep the buffer alive for themselves.
        """
        self.clear()

    def UniqueStorageShareExternalPointer(self, src, T, capacity, deleter=None):
        """Look at memory from outside: `capacity` bytes at `src`, of type `T`.

        `src` is an address on the Storage's device, or a writable buffer, which is kept alive.
        `deleter(address)` is called once, when neither a tensor nor a view needs the memory.

        Raises EnforceNotMet: the Storage is shared (`unique()` is False), the type is
        not POD, the address, buffer or capacity is no such thing, the memory is not
        aligned for the type, or a buffer is given for a device.

        Follows StorageImpl::UniqueStorageShareExternalPointer,
        c10/core/StorageImpl.h, PyTorch 1.8.1.
        """
        cdef TypeMeta dtype = as_type(T)
        cdef uintptr_t address
        cdef unsigned char[::1] keep
        caller = "Storage.UniqueStorageShareExternalPointer"
        if self.users != 1:
            raise EnforceNotMet(
                f"{self.users} tensors hold the Storage, and it takes memory for one alone. Take "
                "a tensor with a Storage of its own.", caller, condition="unique()")
        if not dtype.c_is_pod:
            raise EnforceNotMet(
                f"Memory from outside holds POD elements, not {dtype}.", caller, condition="T.is_pod")
        nbytes = as_nbytes(capacity, caller)
        deleter = as_deleter(deleter, caller)
        keep = None
        if isinstance(src, int):
            address = as_address(src, caller)
        else:
            if self.device_type != DL_CPU:
                raise EnforceBufferError(
                    f"A buffer is on the cpu and the Storage on {self.device()}.", caller)
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
            "A Storage is not copied or pickled apart from its tensor; use Clone() or pickle "
            "the tensor.")

    def __bool__(self):
        return True

    def __repr__(self):
        return (f"Storage(nbytes={self.c_nbytes}, dtype={self.c_dtype}, "
                f"device='{self.device()}', use_count={self.users})")


forbid_calling(Storage)


@cython.final
cdef class Elements:
    """The elements of a non-POD buffer, Python objects all."""

    def __init__(self):
        raise TypeError("Elements come with the Storage of a non-POD tensor.")


@cython.final
cdef class ExternalPtr:
    """Memory from outside and the duty to tell its owner when it may go."""

    def __init__(self):
        raise TypeError("An ExternalPtr is made by sharing external memory.")

    def __del__(self):
        # A finaliser and not __dealloc__: in a cycle it runs before anything that the
        # deleter refers to is cleared (PEP 442), and never twice.
        deleter = self.deleter
        if deleter is not None:
            self.deleter = None
            deleter(<uintptr_t>self.data)


cdef object _writable_bytes(object src, int64_t nbytes, str caller):
    """The bytes of a buffer that is writable, contiguous and large enough."""
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
            f"The buffer has {view.nbytes} bytes, and {nbytes} are said.", caller,
            condition="capacity <= len(buffer)")
    return view


def as_address(src, caller):
    """An address that is not NULL, as an int."""
    if isinstance(src, bool) or not isinstance(src, int):
        raise EnforceTypeError(f"An address is an int, not {type(src).__name__}.", caller)
    if src <= 0 or src > <uintptr_t>-1:
        raise EnforceValueError(f"{src} is no address.", caller, condition="src != nullptr")
    return src


def as_nbytes(nbytes, caller):
    """A number of bytes that is not negative and fits an int64."""
    if isinstance(nbytes, bool) or not isinstance(nbytes, int):
        raise EnforceTypeError(
            f"A number of bytes is an int, not {type(nbytes).__name__}.", caller)
    if nbytes < 0 or nbytes > INT64_MAX:
        raise EnforceValueError(
            f"{nbytes} is no number of bytes.", caller, condition="0 <= nbytes < 2**63")
    return nbytes


def as_deleter(deleter, caller):
    """A callable or None."""
    if deleter is not None and not callable(deleter):
        raise EnforceTypeError(
            f"A deleter is called with the address; {type(deleter).__name__} cannot be.", caller,
            condition="callable(deleter)")
    return deleter


cdef ExternalPtr external_ptr(void* data, object keep, object deleter):
    cdef ExternalPtr ptr = ExternalPtr.__new__(ExternalPtr)
    ptr.data = data
    ptr.keep = keep
    ptr.deleter = deleter
    return ptr


cdef Storage new_storage(int32_t device_type, int32_t device_index):
    """A Storage without memory, as Storage::create_legacy makes."""
    cdef Storage storage = Storage.__new__(Storage)
    storage.device_type = device_type
    storage.device_index = device_index
    storage.c_dtype = undefined_type
    return storage


# Multiplied at run time: a list built at its length frees another one's memory where there is none
# for it, in free-threaded CPython 3.13.
cdef list _ONE_STRING = [b""]
cdef list _ONE_PLACE = [None]


cdef Elements new_elements(TypeMeta dtype, int64_t n):
    """`n` elements of a non-POD type, constructed."""
    cdef list items
    cdef int64_t i
    if n > INT64_MAX // 8:
        raise MemoryError(f"{n} elements of {dtype}")
    if dtype is string_type:
        return elements_of(dtype, _ONE_STRING * n)
    cls = dtype.cls
    # All the places first: there may be no memory for them, and constructing takes long.
    items = _ONE_PLACE * n
    for i in range(n):
        items[i] = cls()
    return elements_of(dtype, items)


cdef Elements elements_of(TypeMeta dtype, list items):
    """The elements in `items`, which is taken over."""
    cdef Elements elements = Elements.__new__(Elements)
    elements.dtype = dtype
    elements.items = items
    return elements


def copied_items(items, TypeMeta dtype):
    """Copies of elements: immutable strings as they are, others deep-copied."""
    if dtype is string_type:
        return list(items)
    import copy
    if dtype is tensor_type:
        return [_copied_tensor(item, copy.deepcopy) for item in items]
    return [copy.deepcopy(item) for item in items]


def _copied_tensor(item, deepcopy):
    """A copy of a tensor that is an element: what has no content yet has none in the copy."""
    if not item.defined():
        return type(item)()
    if item.storage_initialized():
        return deepcopy(item)
    from bridge.c10.rebuild import sized
    return type(item)._wrap(sized(item.sizes(), item.dtype(), item.GetDevice()))


cdef object allocate_buffer(
    int32_t device_type, int32_t device_index, TypeMeta dtype, int64_t numel, char** data,
    str caller,
):
    """The owner of a new buffer of `numel` elements, and its address; MemoryError if it fails.

    Changes nothing else, so that a tensor is as it was when this raises.
    """
    cdef DataPtr ptr
    cdef Elements elements
    if dtype.c_is_pod:
        if numel > INT64_MAX // dtype.itemsize:
            raise MemoryError(f"{numel} elements of {dtype} are more than memory can be.")
        ptr = allocator_of(device_type, device_index).get(numel * dtype.itemsize)
        if not ptr.allocator.builtin and <uintptr_t>ptr.data % <uintptr_t>min(dtype.itemsize, 8):
            raise EnforceNotMet(
                f"{type(ptr.allocator).__name__}.raw_allocate gave {<uintptr_t>ptr.data:#x}, which "
                f"is not aligned for {dtype}.", caller, condition="address % itemsize == 0")
        data[0] = <char*>ptr.data
        return ptr
    if dtype is undefined_type:
        raise EnforceNotMet(
            "The tensor has no element type yet; call mutable_data(T) first.", caller,
            condition="dtype_initialized()")
    if device_type != DL_CPU:
        raise EnforceNotMet(
            f"Elements of the non-POD type {dtype} live on the CPU only.", caller)
    elements = new_elements(dtype, numel)
    data[0] = <char*><void*>elements if numel else NULL
    return elements


cdef int install(
    Storage storage, object ctx, char* data, TypeMeta dtype, int64_t nbytes, int flags,
) except -1:
    """Return `storage` a buffer in place of the one it has."""
    # The old owner goes last: its end may run Python, which must not see us half done.
    old = storage.ctx
    storage.ctx = ctx
    storage.data = data
    storage.c_dtype = dtype
    storage.c_nbytes = nbytes
    storage.flags = flags
    del old
    return 0
