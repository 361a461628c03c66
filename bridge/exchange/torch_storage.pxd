# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.storage cimport Storage

cdef int check_borrowed(Storage storage) except -1
cdef int retain_borrowed(Storage storage) except -1
cdef int retain_imported(Storage storage, object owner) except -1
cdef object torch_owner(Storage storage)
cdef object torch_storage(Storage storage)
cdef int64_t lead_of_lent(Storage storage) except -1
