# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""How long torch's memory lives: checks before it is read, and what keeps it in place.

An imported torch tensor is kept alive by the Storage, but its memory may go all the same:
``resize_``, ``set_`` and an assignment to ``.data`` let go of it, and the storage may have been
shrunk before the import. Asking torch for the storage takes 2 us if Python has not seen that
storage yet, ten times the import (torch 2.13). So it is asked before the first access to the
data and not at import: the Storage is BORROWED, and checked before every access.

Memory that leaves the bridge must stay for good, so it is retained: torch's storage is kept instead
of the tensor, which may be given another, and is made unresizable, as torch's own ``numpy()`` does.
torch cannot do that to CUDA memory: a second tensor over the same storage is kept, and the memory
is checked before every access from then on, too.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcmp

from bridge.c10.allocator cimport DataPtr
from bridge.c10.device cimport host_accessible
from bridge.c10.storage cimport (
    BORROWED,
    RETAINED,
    UNVERIFIED,
    Storage,
    begin_of,
    flags_of,
    nbytes_of,
    owner_of,
    set_flags,
    storage_type,
)
from bridge.c10.type_meta cimport TypeMeta
from bridge.dlpack.abi cimport DLDataType, DLTensor
from bridge.exchange.torch_api cimport (
    address_of,
    is_resizable,
    is_tensor,
    torch,
    torch_type,
    untyped_storage,
)
from bridge.exchange.torch_layout cimport described, reads_contained

from bridge.c10.errors import EnforceBufferError


cdef object torch_owner(Storage storage):
    """Return the torch.Tensor whose storage has the memory; None if it is not torch's."""
    return _torch_owner(owner_of(storage))


cdef object _torch_owner(object owner):
    if type(owner) is DataPtr:
        owner = (<DataPtr>owner).memory
    if is_tensor(owner):
        return owner
    return None


cdef int check_borrowed(Storage storage) except -1:
    """Raise EnforceBufferError unless the memory is still where the Storage has it."""
    while True:
        owner = owner_of(storage)   # another thread may retain the memory meanwhile
        if nbytes_of(storage) == 0 or not flags_of(storage) & BORROWED:
            return 0
        try:
            return _check_owned(storage, owner)
        except EnforceBufferError:
            if owner_of(storage) is owner:
                raise
            # Another thread has replaced the memory: what there is now is checked.


cdef int _check_owned(Storage storage, object owner) except -1:
    """Do as `check_borrowed`, where `owner` has the memory."""
    if type(owner) is DataPtr:
        if <uintptr_t>_torch_owner(owner).data_ptr() != <uintptr_t>begin_of(storage):
            raise EnforceBufferError(
                "torch has resized the storage of this memory through a tensor that to_torch() "
                "returned; the memory is gone.", "Storage",
                condition="tensor.data_ptr() as allocated")
        return 0
    return _require_in_place(storage, owner)


cdef int _require_in_place(Storage storage, object owner) except -1:
    """Raise EnforceBufferError unless the tensor `owner` has the memory and the type still.

    It may have less memory at the same address.
    """
    cdef object _kept
    cdef DLTensor now
    cdef TypeMeta dtype
    if (_kept := described(owner, &now)) is None:
        raise EnforceBufferError(
            "The torch tensor that this memory came from has no memory any more.", "Storage")
    if <char*>now.data != begin_of(storage):
        raise EnforceBufferError(
            "The torch tensor that this memory came from was resized, or given other memory or "
            "another offset of its storage, after it was imported. Import it again.", "Storage",
            condition="tensor.data_ptr() as at import")
    if flags_of(storage) & RETAINED:
        return 0            # `owner` is of bytes
    dtype = <TypeMeta>storage_type(storage)
    if memcmp(&now.dtype, &dtype.c_dlpack, sizeof(DLDataType)) != 0:
        raise EnforceBufferError(
            f"The torch tensor that this memory came from had elements of {dtype} at import and "
            f"has {str(owner.dtype).removeprefix('torch.')} now. Import it again.", "Storage",
            condition="tensor.dtype as at import")
    if not reads_contained(storage, <PyObject*>owner):
        _verify(storage, owner, untyped_storage(owner))
    return 0


cdef int _verify(Storage storage, object owner, object untyped) except -1:
    """Raise EnforceBufferError unless the memory lies within torch's storage `untyped`."""
    cdef uintptr_t begin = address_of(untyped)
    cdef uintptr_t end = begin + <uintptr_t>len(untyped)
    cdef uintptr_t data = <uintptr_t>begin_of(storage)
    if data < begin or data + <uintptr_t>nbytes_of(storage) > end:
        raise EnforceBufferError(
            f"The storage of the torch tensor has {end - begin} bytes, fewer than the "
            "tensor's sizes and strides reach: it was resized under the tensor.", "Storage",
            condition="sizes and strides lie within the storage")
    with cython.critical_section(storage):
        if storage.ctx is owner:
            set_flags(storage, storage.flags & ~UNVERIFIED)
    return 0


cdef int retain_borrowed(Storage storage) except -1:
    """Keep the memory in place for good, whatever becomes of the tensor it came from."""
    owner = owner_of(storage)
    if nbytes_of(storage) == 0 or flags_of(storage) & (BORROWED | RETAINED) != BORROWED \
            or type(owner) is DataPtr:
        return check_borrowed(storage)
    _require_in_place(storage, owner)
    return retain_imported(storage, owner)


cdef int retain_imported(Storage storage, object owner) except -1:
    """As `retain_borrowed`, for memory that was imported from `owner` and not exported yet.

    No Python ran since the import, so that the tensor has the memory still.
    """
    untyped = untyped_storage(owner)
    if flags_of(storage) & UNVERIFIED:
        _verify(storage, owner, untyped)
    if host_accessible(storage.device_type):
        if is_resizable(untyped):
            _forbid_resizing(untyped)
        with cython.critical_section(storage):
            if storage.ctx is owner:    # another thread may have given the storage other memory
                storage.ctx = untyped       # (`owner` keeps the former one)
                set_flags(storage, storage.flags & ~(BORROWED | UNVERIFIED))
        return 0
    try:
        keeper = torch.empty(0, dtype=torch.uint8, device=untyped.device)
    except RuntimeError as error:       # CUDA in a forked child
        raise EnforceBufferError(
            f"torch does not let the memory on {untyped.device} be kept: {error}",
            "Storage") from error
    keeper.set_(untyped, <uintptr_t>begin_of(storage) - <uintptr_t>untyped.data_ptr(),
                (nbytes_of(storage),), (1,))
    with cython.critical_section(storage):
        if storage.ctx is owner:
            storage.ctx = keeper
            set_flags(storage, (storage.flags & ~UNVERIFIED) | RETAINED)
    return 0


cdef int _forbid_resizing(object untyped) except -1:
    base = torch._C
    if base._len_torch_dispatch_stack() \
            or base._dispatch_tls_is_dispatch_key_included(base.DispatchKey.PreDispatch):
        # without the modes that trace what is called, or make fake tensors (looking takes 0.3 us,
        # leaving them 12)
        with torch.utils._python_dispatch._disable_current_modes():
            _mark(untyped)
    else:
        _mark(untyped)
    return 0


cdef int _mark(object untyped) except -1:
    tensor = torch.empty(0, dtype=torch.uint8, device=untyped.device)
    tensor.set_(untyped)
    tensor.numpy()          # torch marks the storage: resize_ raises from now on
    return 0


cdef object torch_storage(Storage storage):
    """Return the torch.UntypedStorage that has the memory; None if torch does not know it yet."""
    cdef object owner = owner_of(storage)
    if torch_type() == NULL:
        return None
    if isinstance(owner, torch.UntypedStorage):
        return owner
    base = torch_owner(storage)
    if base is None:
        base = storage.base
    return None if base is None else untyped_storage(base)


cdef int64_t lead_of_lent(Storage storage) except -1:
    """Return how many bytes torch's storage has before the memory of a LENT Storage."""
    if nbytes_of(storage) == 0:
        return 0
    storage.check()
    return <int64_t>(<uintptr_t>begin_of(storage) - address_of(torch_storage(storage)))
