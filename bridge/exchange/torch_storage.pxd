# SPDX-License-Identifier: Apache-2.0
from bridge.c10.storage cimport Storage

cdef int check_borrowed(Storage storage) except -1
cdef int retain_borrowed(Storage storage) except -1
cdef int retain_imported(Storage storage, object owner) except -1
cdef object torch_owner(Storage storage)
