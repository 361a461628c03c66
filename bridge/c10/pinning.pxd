# SPDX-License-Identifier: Apache-2.0
"""Memory that is handed out, and so has to stay where it is."""

from bridge.c10.storage cimport BORROWED, Storage
from bridge.c10.tensor_impl cimport TensorImpl


cdef inline char* pinned_data(TensorImpl impl, str caller) except? NULL:
    # The address of the first element, of which `impl.storage.ctx` is the owner from then on.
    #
    # A framework that lends the memory is asked to keep it there, which runs Python: meanwhile
    # another thread may give the tensor another storage, so nothing is read from it before.
    cdef Storage storage = impl.storage
    while storage is not None and storage.flags & BORROWED and storage.c_nbytes:
        storage.pin()
        storage = impl.storage
    return impl.data(caller)
