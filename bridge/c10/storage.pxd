# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from cpython.object cimport PyObject

cimport bridge.c10.python_api   # BRIDGE_LOAD, BRIDGE_WORD

from bridge.c10.type_meta cimport TypeMeta

# Storage.flags
cdef enum:
    READONLY = 1        # nothing may write the memory
    BORROWED = 2        # `ctx` is a framework's tensor, which may be given other memory
    UNVERIFIED = 4      # BORROWED, and not yet compared with the size of the framework's storage
    EXTERNAL = 8        # not allocated here: feeding a blob does not write into it
    RETAINED = 16       # BORROWED, but `ctx` is the bridge's own tensor of the framework's storage
    OBJECTS = 32        # `ctx` is Elements; set by `install`
    LENT = 64           # `data` lies in a storage of a framework, and need not be its begin

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define BRIDGE_ADD(number, n) __atomic_add_fetch(number, n, __ATOMIC_ACQ_REL)
    #define BRIDGE_SET_SIZE(number, n) __atomic_store_n(number, n, __ATOMIC_SEQ_CST)
    #define BRIDGE_SET_BEGIN(storage, begin) \
        __atomic_store_n(&(storage)->data, begin, __ATOMIC_SEQ_CST)
    #define BRIDGE_BEGIN(storage) \
        (__atomic_thread_fence(__ATOMIC_ACQUIRE), \
         __atomic_load_n(&(storage)->data, __ATOMIC_ACQUIRE))
    #else
    #define BRIDGE_ADD(number, n) (*(number) += (n))
    #define BRIDGE_SET_SIZE(number, n) ((void)(*(number) = (n)))
    #define BRIDGE_SET_BEGIN(storage, begin) ((void)((storage)->data = (begin)))
    #define BRIDGE_BEGIN(storage) ((storage)->data)
    #endif
    """
    # Change Storage.users, which threads without a lock between them do at once.
    void add_users "BRIDGE_ADD"(int32_t* number, int32_t n) noexcept
    # Set Storage.c_nbytes before, and after, anything that follows, or comes before, in the code.
    void set_size "BRIDGE_SET_SIZE"(int64_t* number, int64_t n) noexcept
    void set_begin "BRIDGE_SET_BEGIN"(Storage storage, char* begin) noexcept

# The Note "Who owns the memory" is in storage.pyx.
cdef class Storage:
    cdef char* data             # lowest address; NULL: not allocated
    cdef int64_t c_nbytes
    cdef object ctx             # the owner of the memory; None: not allocated
    cdef object base            # the framework's tensor of the buffer; see exchange.torch_views
    cdef TypeMeta c_dtype       # that the memory was last allocated for
    cdef int32_t users          # TensorImpls that share this Storage
    cdef int32_t device_index
    cdef int16_t device_type
    cdef uint8_t flags
    cdef int check(self) except -1
    cdef int retain(self) except -1
    cdef int64_t lead(self) except -1
    cdef void clear(self) noexcept

# The elements of a non-POD buffer.
cdef class Elements:
    cdef readonly list items
    cdef readonly TypeMeta dtype

# Memory from outside, whose owner is told when it is no longer used.
cdef class ExternalPtr:
    cdef void* data
    cdef object keep            # what the memory belongs to, or None
    cdef object deleter         # called once, with the address; or None

cdef extern from *:
    """
    #define BRIDGE_OWNER(storage) BRIDGE_LOAD(storage, ctx)
    #define BRIDGE_NBYTES_OF(storage) BRIDGE_WORD(&(storage)->c_nbytes)
    #define BRIDGE_FLAGS_OF(storage) BRIDGE_WORD(&(storage)->flags)
    #define BRIDGE_SET_FLAGS(storage, bits) BRIDGE_SET_WORD(&(storage)->flags, (uint8_t)(bits))
    #define BRIDGE_USERS_OF(storage) BRIDGE_WORD(&(storage)->users)
    #define BRIDGE_STORAGE_TYPE(storage) BRIDGE_WORD((PyObject **)&(storage)->c_dtype)
    #ifdef Py_GIL_DISABLED      /* a TypeMeta is immortal */
    #define BRIDGE_SET_TYPE(field, type) BRIDGE_SET_WORD((PyObject **)(field), (PyObject *)(type))
    #else
    #define BRIDGE_SET_TYPE(field, type) \
        Py_SETREF(*(PyObject **)(field), Py_NewRef((PyObject *)(type)))
    #endif
    #define BRIDGE_SET_STORAGE_TYPE(storage, type) BRIDGE_SET_TYPE(&(storage)->c_dtype, type)
    """
    # The fields of a Storage that another thread may be installing a buffer in, or that is locked.
    int64_t nbytes_of "BRIDGE_NBYTES_OF"(Storage storage) noexcept
    uint8_t flags_of "BRIDGE_FLAGS_OF"(Storage storage) noexcept
    int32_t users_of "BRIDGE_USERS_OF"(Storage storage) noexcept
    PyObject* storage_type "BRIDGE_STORAGE_TYPE"(Storage storage) noexcept      # borrowed
    void set_flags "BRIDGE_SET_FLAGS"(Storage storage, int flags) noexcept
    void set_storage_type "BRIDGE_SET_STORAGE_TYPE"(Storage storage, TypeMeta dtype) noexcept
    # Return `storage.data`, read after what comes before and before what follows.
    char* begin_of "BRIDGE_BEGIN"(Storage storage) noexcept
    # Return `storage.ctx`, which `install` and `retain` may replace in another thread.
    object owner_of "BRIDGE_OWNER"(Storage storage)

cdef Storage new_storage(int32_t device_type, int32_t device_index)
cdef Elements new_elements(TypeMeta dtype, int64_t n)
cdef Elements elements_of(TypeMeta dtype, list items)
cdef object allocate_buffer(
    int32_t device_type, int32_t device_index, TypeMeta dtype, int64_t numel, char** data,
    str caller)
cdef int install(
    Storage storage, object ctx, char* data, TypeMeta dtype, int64_t nbytes, int flags) except -1
cdef int share_buffer(Storage storage, Storage source, int more_flags) except -1
cdef ExternalPtr external_ptr(void* data, object keep, object deleter)

ctypedef int (*storage_hook)(Storage) except -1
ctypedef int64_t (*lead_hook)(Storage) except -1
cdef void set_borrow_hooks(storage_hook check, storage_hook retain, lead_hook lead)
