# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t, int64_t, uint8_t

cimport bridge.c10.python_api   # BRIDGE_LOAD

from bridge.c10.array_ref cimport ArrayRef
from bridge.c10.python_api cimport FREE_THREADED, lock_object, unlock_object
from bridge.c10.storage cimport Storage
from bridge.c10.type_meta cimport TypeMeta
from bridge.dlpack.abi cimport DL_CUDA, DL_CUDA_MANAGED

cdef enum:
    INLINE_NDIM = 2     # up to so many dimensions, sizes and strides need no block of their own

# TensorImpl.flags
cdef enum:
    CONTIGUOUS = 1      # row-major without gaps
    RESERVED = 2        # Resize keeps the buffer as long as it is large enough
    OWN_ORIGIN = 4      # `origin` was created here and is never exported, only aliases of it
    SNAPSHOT = 8        # not counted among the users of the Storage; see `seen`

cdef enum:
    FEW_DIMS = 16       # sizes that `read_sizes` copies

cdef class TensorImpl:
    cdef Storage storage        # None: undefined
    cdef TypeMeta c_dtype
    # The framework's tensor that this was imported from, which is exported again to its framework;
    # None once their metadata differ. With OWN_ORIGIN: a tensor over memory of the bridge.
    cdef object origin
    cdef ArrayRef sizes_ref     # what sizes() returned last; None once the sizes changed
    cdef int64_t offset         # elements from storage.data to the first element
    cdef int64_t c_numel
    cdef int64_t* c_sizes       # ndim sizes, then ndim strides, in elements
    cdef int32_t ndim
    cdef uint8_t flags
    cdef int64_t[2 * INLINE_NDIM] inline
    cdef object __weakref__

    cdef int64_t* c_strides(self) noexcept
    cdef int set_ndim(self, int ndim) except -1
    cdef int set_contiguous(self, const int64_t* sizes, int ndim, int64_t numel) except -1
    cdef int set_strided(
        self, const int64_t* sizes, const int64_t* strides, int ndim, int64_t numel) except -1
    cdef void finish(self) noexcept
    cdef int set_described(self, const int64_t* sizes, const int64_t* strides, int ndim) except -1
    cdef int set_storage(self, Storage storage) except -1
    cdef char* data(self, str caller) except? NULL
    cdef int writable(self, str caller) except -1
    cdef int require_defined(self, str caller) except -1
    cdef bint storage_initialized(self) noexcept
    cdef ArrayRef sizes_view(self)
    cdef ArrayRef strides_view(self)

cdef extern from *:
    """
    #define BRIDGE_ORIGIN(impl) BRIDGE_LOAD(impl, origin)
    #define BRIDGE_STORAGE(impl) BRIDGE_LOAD(impl, storage)
    #define BRIDGE_SIZES_REF(impl) BRIDGE_LOAD(impl, sizes_ref)
    #ifdef Py_GIL_DISABLED
    #define BRIDGE_IS_UNDEFINED(impl) \
        (__atomic_load_n((PyObject **)&(impl)->storage, __ATOMIC_RELAXED) == Py_None)
    #define BRIDGE_SET_FIELD(field, object) __atomic_exchange_n(field, object, __ATOMIC_ACQ_REL)
    #define BRIDGE_READ_SIZES(impl, room, sizes, n) do { \
        PyCriticalSection section; \
        PyCriticalSection_Begin(&section, (PyObject *)(impl)); \
        *(n) = (impl)->ndim; \
        *(sizes) = NULL; \
        if (*(n) <= 16) { \
            memcpy(room, (impl)->c_sizes, *(n) * sizeof(int64_t)); \
            *(sizes) = room; \
        } \
        PyCriticalSection_End(&section); \
    } while (0)
    #else
    #define BRIDGE_IS_UNDEFINED(impl) ((PyObject *)(impl)->storage == Py_None)
    static CYTHON_INLINE PyObject *bridge_set_field(PyObject **field, PyObject *object) {
        PyObject *old = *field;
        *field = object;
        return old;
    }
    #define BRIDGE_SET_FIELD(field, object) bridge_set_field(field, object)
    #define BRIDGE_READ_SIZES(impl, room, sizes, n) \
        ((void)(room), *(n) = (impl)->ndim, *(sizes) = (impl)->c_sizes)
    #endif
    #define BRIDGE_EXCHANGE_STORAGE(impl, fresh) \
        BRIDGE_SET_FIELD((PyObject **)&(impl)->storage, Py_NewRef((PyObject *)(fresh)))
    """
    # Return `impl.origin`, which an export in another thread may set.
    object origin_of "BRIDGE_ORIGIN"(TensorImpl impl)
    # Return `impl.storage`, which another thread may replace.
    Storage storage_of "BRIDGE_STORAGE"(TensorImpl impl)
    # Set `impl.storage` and return the former one; for `TensorImpl.set_storage` only.
    Storage exchange_storage "BRIDGE_EXCHANGE_STORAGE"(TensorImpl impl, Storage storage)
    # Return whether `impl.storage` is None.
    bint is_undefined "BRIDGE_IS_UNDEFINED"(TensorImpl impl) noexcept
    # Return `impl.sizes_ref`; None if the sizes were not asked for.
    ArrayRef sizes_ref_of "BRIDGE_SIZES_REF"(TensorImpl impl)
    # Set `sizes` to the sizes and `ndim` to their number; NULL if there are more than FEW_DIMS.
    # `room`, of FEW_DIMS, has them where another thread may change the tensor.
    void read_sizes "BRIDGE_READ_SIZES"(
        TensorImpl impl, int64_t* room, int64_t** sizes, int* ndim) noexcept

cdef TensorImpl undefined_impl
cdef TensorImpl new_impl(Storage storage, TypeMeta dtype)
cdef TensorImpl new_pair(int32_t device_type, int32_t device_index, TypeMeta dtype)
cdef TensorImpl like(TensorImpl source)
cdef TensorImpl snapshot(TensorImpl source)
cdef char* checked_data(TensorImpl self, Storage storage, str caller) except? NULL

cdef inline TensorImpl seen(TensorImpl impl):
    """Return what an export reads: `impl`, or a copy of it where other threads may change it."""
    return snapshot(impl) if FREE_THREADED and not impl.flags & SNAPSHOT else impl

# Fields of `impl.storage`, which another thread may replace; the tensor is defined.
cdef inline int32_t device_type_of(TensorImpl impl) noexcept:
    lock_object(impl)
    cdef int32_t found = impl.storage.device_type
    unlock_object()
    return found

cdef inline int32_t device_index_of(TensorImpl impl) noexcept:
    lock_object(impl)
    cdef int32_t found = impl.storage.device_index
    unlock_object()
    return found

cdef inline uint8_t storage_flags(TensorImpl impl) noexcept:
    lock_object(impl)
    cdef uint8_t found = impl.storage.flags
    unlock_object()
    return found

cdef inline int32_t allocatable(int32_t device_type) noexcept nogil:
    """Return the type of the memory for a copy of memory of this type on the same device.

    CUDA memory for managed memory, which torch does not allocate.
    """
    return DL_CUDA if device_type == DL_CUDA_MANAGED else device_type

cdef TensorImpl allocated(
    const int64_t* sizes, int ndim, TypeMeta dtype, int32_t device_type, int32_t device_index,
    str caller)
