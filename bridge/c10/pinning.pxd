# SPDX-License-Identifier: Apache-2.0
"""Memory that is handed out, and so has to stay where it is."""

from bridge.c10.allocator cimport DataPtr
from bridge.c10.storage cimport BORROWED, HELD, Storage
from bridge.c10.tensor_impl cimport TensorImpl


cdef inline char* pinned_data(TensorImpl impl, str caller) except? NULL:
    # The address of the first element, of which `impl.storage.ctx` is the owner from then on.
    #
    # A framework that lends the memory is asked to keep it there, which runs Python: meanwhile
    # another thread may give the tensor another storage, so nothing is read from it before. What
    # stays lent when it was asked is HELD, or the bridge's own buffer in the framework's keeping.
    cdef Storage storage = impl.storage
    cdef char* data
    while storage is not None and storage.flags & (BORROWED | HELD) == BORROWED \
            and storage.c_nbytes and type(storage.ctx) is not DataPtr:
        storage.pin()
        storage = impl.storage
    data = impl.data(caller)
    if not impl.c_dtype.c_is_pod:
        # Whoever calls has asked before, and another thread gave the tensor other elements since.
        from bridge.c10.errors import EnforceBufferError
        raise EnforceBufferError(
            f"The tensor was given elements of {impl.c_dtype}, which are no plain memory.", caller,
            condition="dtype().is_pod")
    return data
