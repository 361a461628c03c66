# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint16_t, uint64_t

from bridge.c10.python_api cimport Py_TYPE
from bridge.c10.storage cimport Storage, begin_of, nbytes_of
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta

cdef enum:
    MOST_DIMS = 5           # whose sizes torch keeps in the TensorImpl
    TYPES = 128

# Where torch has the fields of a tensor, in bytes; see torch_layout.pyx.
cdef struct Places:
    PyTypeObject* type          # torch.Tensor; NULL: nothing is read
    Py_ssize_t impl             # in the Python object: the address of its TensorImpl
    Py_ssize_t storage          # in that: the address of its StorageImpl,
    Py_ssize_t ndim
    Py_ssize_t sizes
    Py_ssize_t strides
    Py_ssize_t offset           # in elements
    Py_ssize_t dtype            # a number of torch's
    Py_ssize_t keys             # its dispatch keys
    Py_ssize_t data             # in the StorageImpl: the address of the memory,
    Py_ssize_t nbytes           # and its size
    uint64_t plain              # the dispatch keys of a plain tensor of the CPU
    PyObject* types[TYPES]      # the TypeMeta of a number of torch's; they live for ever

cdef Places places


cdef inline int64_t word_at(const char* place) noexcept:
    return (<const int64_t*>place)[0]


cdef inline char* _impl_of(object tensor) noexcept:
    return (<char**>(<char*><PyObject*>tensor + places.impl))[0]


cdef inline bint _has_type(const char* now, TypeMeta dtype) noexcept:
    cdef uint16_t number = (<const uint16_t*>(now + places.dtype))[0]
    return number < TYPES and places.types[number] == <PyObject*>dtype


cdef inline bint reads_plain(object tensor) noexcept:
    """Return whether this is a plain torch.Tensor of the CPU; False: torch must be asked."""
    return Py_TYPE(tensor) == places.type \
        and <uint64_t>word_at(_impl_of(tensor) + places.keys) == places.plain


cdef inline int64_t reads_offset(object tensor, TypeMeta dtype) noexcept:
    """Return the storage offset of a plain torch.Tensor of this type; -1: torch must be asked."""
    if not reads_plain(tensor) or not _has_type(_impl_of(tensor), dtype):
        return -1
    return word_at(_impl_of(tensor) + places.offset)


cdef inline bint _contains(const char* torch_storage, Storage storage) noexcept:
    return torch_storage != NULL \
        and begin_of(storage) >= <char*>word_at(torch_storage + places.data) \
        and begin_of(storage) + nbytes_of(storage) \
        <= <char*>word_at(torch_storage + places.data) + word_at(torch_storage + places.nbytes)


cdef inline bint reads_contained(Storage storage, object tensor) noexcept:
    """Return whether the memory of `storage` lies in that of a plain torch.Tensor of the CPU.

    False: torch must be asked.
    """
    return reads_plain(tensor) \
        and _contains(<char*>word_at(_impl_of(tensor) + places.storage), storage)


cdef inline bint reads_unchanged(TensorImpl impl, object tensor) noexcept:
    """Return whether this is a torch.Tensor of the sizes, type and memory of `impl`, without a lazy
    bit and within its storage. False: torch must be asked.
    """
    cdef const char* now
    cdef const int64_t* sizes
    cdef const int64_t* strides
    cdef char* storage
    cdef int i, ndim = impl.ndim
    if not reads_plain(tensor) or ndim > MOST_DIMS:
        return False
    now = _impl_of(tensor)
    storage = (<char**>(now + places.storage))[0]
    if word_at(now + places.ndim) != ndim or not _has_type(now, impl.c_dtype):
        return False
    sizes, strides = impl.c_sizes, impl.c_sizes + ndim
    for i in range(ndim):
        if word_at(now + places.sizes + 8 * i) != sizes[i] or (
                word_at(now + places.strides + 8 * i) != strides[i] and sizes[i] > 1):
            return False
    return impl.c_numel == 0 or (
        _contains(storage, impl.storage)
        and <char*>word_at(storage + places.data)
        + (word_at(now + places.offset) - impl.offset) * impl.c_dtype.itemsize == impl.storage.data)
