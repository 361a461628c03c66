# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp

cimport bridge.c10.python_api   # BRIDGE_LOAD, BRIDGE_WORD

from bridge.c10.array_ref cimport ArrayRef
from bridge.c10.python_api cimport (
    FREE_THREADED,
    lock_object,
    pointer,
    unlock_object,
    word8,
    word64,
)
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
    cdef object held(self, char** data, str caller)
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
    #define BRIDGE_IS_STORAGE(impl, one) \
        (BRIDGE_WORD((PyObject **)&(impl)->storage) == (PyObject *)(one))
    #define BRIDGE_NUMEL(impl) BRIDGE_WORD(&(impl)->c_numel)
    #define BRIDGE_NDIM(impl) BRIDGE_WORD(&(impl)->ndim)
    #define BRIDGE_OFFSET(impl) BRIDGE_WORD(&(impl)->offset)
    #define BRIDGE_IMPL_FLAGS(impl) BRIDGE_WORD(&(impl)->flags)
    #define BRIDGE_DTYPE(impl) BRIDGE_WORD((PyObject **)&(impl)->c_dtype)
    #define BRIDGE_SET_NUMEL(impl, n) BRIDGE_SET_WORD(&(impl)->c_numel, n)
    #define BRIDGE_SET_OFFSET(impl, n) BRIDGE_SET_WORD(&(impl)->offset, n)
    #define BRIDGE_SET_IMPL_FLAGS(impl, bits) BRIDGE_SET_WORD(&(impl)->flags, (uint8_t)(bits))
    #define BRIDGE_SET_DTYPE(impl, type) BRIDGE_SET_TYPE(&(impl)->c_dtype, type)
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
    # Return whether `impl.storage` is this one, which the caller keeps.
    bint is_storage "BRIDGE_IS_STORAGE"(TensorImpl impl, Storage storage) noexcept
    # One number of a tensor that another thread may be changing. What needs two that belong
    # together reads them in a critical section, or in a snapshot. Changes are made in a section.
    int64_t numel_of "BRIDGE_NUMEL"(TensorImpl impl) noexcept
    int32_t ndim_of "BRIDGE_NDIM"(TensorImpl impl) noexcept
    int64_t offset_of "BRIDGE_OFFSET"(TensorImpl impl) noexcept
    uint8_t impl_flags "BRIDGE_IMPL_FLAGS"(TensorImpl impl) noexcept
    PyObject* dtype_of "BRIDGE_DTYPE"(TensorImpl impl) noexcept     # borrowed: types stay for good
    void set_numel "BRIDGE_SET_NUMEL"(TensorImpl impl, int64_t numel) noexcept
    void set_offset "BRIDGE_SET_OFFSET"(TensorImpl impl, int64_t offset) noexcept
    void set_impl_flags "BRIDGE_SET_IMPL_FLAGS"(TensorImpl impl, int flags) noexcept
    void set_dtype "BRIDGE_SET_DTYPE"(TensorImpl impl, TypeMeta dtype) noexcept
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
    return snapshot(impl) if FREE_THREADED and not impl_flags(impl) & SNAPSHOT else impl

cdef inline object former(TensorImpl impl):
    """Return what `impl` refers to, for the time of a change in a critical section.

    To let go of an object may run Python, or wait, and so let other threads in before the change is
    complete. With the GIL nothing is returned.
    """
    return (impl.storage, impl.origin, impl.sizes_ref) if FREE_THREADED else None

cdef inline bint has_origin(TensorImpl impl) noexcept:
    """Return whether `impl.origin` is not None."""
    lock_object(impl)
    cdef bint found = impl.origin is not None
    unlock_object()
    return found

cdef inline bint is_contiguous_now(TensorImpl impl) noexcept:
    return (impl_flags(impl) & CONTIGUOUS) != 0

cdef inline int64_t nbytes_now(TensorImpl impl) noexcept:
    """Return the bytes of the elements, for a report."""
    return numel_of(impl) * (<TypeMeta>dtype_of(impl)).itemsize

cdef inline bint is_pod_now(TensorImpl impl) noexcept:
    return (<TypeMeta>dtype_of(impl)).c_is_pod

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
    cdef uint8_t found = word8(&impl.storage.flags)
    unlock_object()
    return found

cdef inline int64_t storage_nbytes(TensorImpl impl) noexcept:
    lock_object(impl)
    cdef int64_t found = word64(&impl.storage.c_nbytes)
    unlock_object()
    return found

cdef inline bint has_memory(TensorImpl impl) noexcept:
    """Return whether the Storage of a tensor that is defined has a buffer."""
    lock_object(impl)
    cdef bint found = pointer(<void**>&impl.storage.data) != NULL
    unlock_object()
    return found

cdef inline bint has_sizes(TensorImpl impl, const int64_t* sizes, int ndim) noexcept:
    """Return whether these are the sizes."""
    lock_object(impl)
    cdef bint found = impl.ndim == ndim and memcmp(
        impl.c_sizes, sizes, ndim * sizeof(int64_t)) == 0
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
