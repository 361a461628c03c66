# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from bridge.c10.type_meta cimport TypeMeta

# Storage.flags
cdef enum:
    READONLY = 1        # nobody may write the memory
    BORROWED = 2        # a framework's tensor holds the memory and could let it go
    UNVERIFIED = 4      # BORROWED, and not yet compared with the size of its storage
    EXTERNAL = 8        # came from outside: a feed does not write it
    HELD = 16           # BORROWED from a tensor that the bridge made to hold a framework's storage

cdef class Storage:
    cdef char* data             # lowest address; NULL: not allocated
    cdef int64_t c_nbytes
    # Keeps the memory: a DataPtr, a ManagedTensor, a framework's object, the
    # Elements of a non-POD type. A view of the memory holds this, not the Storage.
    cdef object ctx
    cdef TypeMeta c_dtype       # as last allocated
    cdef int32_t users          # TensorImpls that hold this
    cdef int32_t device_index
    cdef int16_t device_type
    cdef uint8_t flags
    cdef int check(self) except -1
    cdef int pin(self) except -1
    cdef void clear(self) noexcept

# The elements of a non-POD buffer.
cdef class Elements:
    cdef readonly list items
    cdef readonly TypeMeta dtype

# Memory that the caller keeps: its end tells the caller that it may go.
cdef class ExternalPtr:
    cdef void* data
    cdef object keep            # what the memory belongs to, or None
    cdef object deleter         # called once, with the address; None: nobody asked

cdef Storage new_storage(int32_t device_type, int32_t device_index)
cdef Elements new_elements(TypeMeta dtype, int64_t n)
cdef Elements elements_of(TypeMeta dtype, list items)
cdef object allocate_buffer(
    int32_t device_type, int32_t device_index, TypeMeta dtype, int64_t numel, char** data,
    str caller)
cdef int install(
    Storage storage, object ctx, char* data, TypeMeta dtype, int64_t nbytes, int flags) except -1
cdef ExternalPtr external_ptr(void* data, object keep, object deleter)

ctypedef int (*storage_hook)(Storage) except -1
cdef void set_borrow_hooks(storage_hook check, storage_hook pin)
