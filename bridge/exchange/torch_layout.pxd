# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint16_t, uint64_t

from bridge.c10.slots cimport type_of
from bridge.c10.storage cimport Storage, begin_of, nbytes_of
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta
from bridge.dlpack.abi cimport DLTensor

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
cdef object described(object tensor, DLTensor* description)
cdef bint has_lazy_bit(object tensor, bint is_complex) except -1


# Objects are passed as pointers: Cython counts a reference to a field that it passes as an object.

cdef inline int64_t word_at(const char* place) noexcept:
    return (<const int64_t*>place)[0]


cdef inline char* _impl_of(PyObject* tensor) noexcept:
    return (<char**>(<char*>tensor + places.impl))[0]


cdef inline bint _has_type(const char* now, PyObject* dtype) noexcept:
    cdef uint16_t number = (<const uint16_t*>(now + places.dtype))[0]
    return number < TYPES and places.types[number] == dtype


cdef inline bint reads_plain(PyObject* tensor) noexcept:
    """Return whether this is a plain torch.Tensor of the CPU; False: torch must be asked."""
    return type_of(tensor) == places.type \
        and <uint64_t>word_at(_impl_of(tensor) + places.keys) == places.plain


cdef inline int64_t reads_offset(PyObject* tensor, TypeMeta dtype) noexcept:
    """Return the storage offset of a plain torch.Tensor of this type; -1: torch must be asked."""
    if not reads_plain(tensor) or not _has_type(_impl_of(tensor), <PyObject*>dtype):
        return -1
    return word_at(_impl_of(tensor) + places.offset)


cdef inline int64_t _lead(const char* torch_storage, const char* begin, int64_t nbytes) noexcept:
    """Return the bytes before `begin` in a torch storage; below 0: it lacks some of `nbytes`."""
    cdef int64_t lead
    if torch_storage == NULL:
        return -1
    lead = begin - <char*>word_at(torch_storage + places.data)
    return lead if lead + nbytes <= word_at(torch_storage + places.nbytes) else -1


cdef inline bint reads_contained(Storage storage, PyObject* tensor) noexcept:
    """Return whether the memory of `storage` lies in that of a plain torch.Tensor of the CPU.

    False: torch must be asked.
    """
    return reads_plain(tensor) and _lead(
        <char*>word_at(_impl_of(tensor) + places.storage), begin_of(storage),
        nbytes_of(storage)) >= 0


cdef inline bint reads_unchanged(TensorImpl impl, PyObject* tensor) noexcept:
    """Return whether this is a torch.Tensor of the sizes, type and memory of `impl`, without a lazy
    bit and within its storage. False: torch must be asked.
    """
    cdef const char* now
    cdef const int64_t* sizes
    cdef const int64_t* strides
    cdef const int64_t* sizes_now
    cdef const int64_t* strides_now
    cdef int64_t offset
    cdef Py_ssize_t i, ndim
    if not reads_plain(tensor):
        return False
    now = _impl_of(tensor)
    ndim = impl.ndim
    if word_at(now + places.ndim) != ndim or ndim > MOST_DIMS \
            or not _has_type(now, <PyObject*>impl.c_dtype):
        return False
    sizes, strides = impl.c_sizes, impl.c_sizes + ndim
    sizes_now = <const int64_t*>(now + places.sizes)
    strides_now = <const int64_t*>(now + places.strides)
    for i in range(ndim):
        if sizes_now[i] != sizes[i] or (strides_now[i] != strides[i] and sizes[i] > 1):
            return False
    offset = word_at(now + places.offset) - impl.offset
    return impl.c_numel == 0 or (offset >= 0 and offset * impl.c_dtype.itemsize == _lead(
        <char*>word_at(now + places.storage), impl.storage.data, impl.storage.c_nbytes))
