# SPDX-License-Identifier: Apache-2.0
"""Addresses that are handed out, whose memory therefore must not move."""

from bridge.c10.allocator cimport DataPtr
from bridge.c10.python_api cimport FREE_THREADED
from bridge.c10.storage cimport BORROWED, RETAINED, Storage, flags_of, nbytes_of, owner_of
from bridge.c10.tensor_impl cimport TensorImpl, is_pod_now, storage_of


cdef inline char* retained_data(TensorImpl impl, str caller) except? NULL:
    # Return the address of the first element; whoever keeps `impl.storage.ctx` keeps it valid.
    #
    # The framework that lends borrowed memory is asked to keep it in place, which runs Python.
    # Meanwhile another thread may give the tensor another storage, so the storage is read again
    # until it needs no asking: it is RETAINED, or a buffer of the bridge that a framework manages.
    cdef Storage storage = storage_of(impl)
    cdef char* data
    while storage is not None and flags_of(storage) & (BORROWED | RETAINED) == BORROWED \
            and nbytes_of(storage) and type(owner_of(storage)) is not DataPtr:
        storage.retain()
        storage = storage_of(impl)
    data = impl.data(caller)
    if not is_pod_now(impl):
        # The caller has checked the type before; another thread changed it since then.
        from bridge.c10.errors import EnforceBufferError
        raise EnforceBufferError(
            f"The tensor was given elements of {impl.dtype()}, which are not plain memory.", caller,
            condition="dtype().is_pod")
    return data


cdef inline object retained_owner(TensorImpl impl, char** data, str caller):
    # Return the owner of the memory, and set `data` to the address of the first element.
    #
    # Where another thread may replace the buffer between the two, they are read until they agree.
    while True:
        data[0] = retained_data(impl, caller)
        owner = owner_of(storage_of(impl))
        if not FREE_THREADED or (
                impl.data(caller) == data[0] and owner_of(storage_of(impl)) is owner):
            return owner
