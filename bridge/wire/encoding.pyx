# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Encoding of a message: single fields, and a tensor's elements.

The elements are written once, directly into the `bytes` that are returned.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from bridge.c10.madvise cimport advise_huge_pages
from bridge.c10.python_api cimport FREE_THREADED, RELEASE_GIL_NBYTES, PyList_GET_ITEM
from bridge.c10.storage cimport BORROWED, Elements
from bridge.c10.tensor_impl cimport TensorImpl, seen, storage_flags
from bridge.wire.decoding cimport STRING_TAG, elements_at, width_of
from bridge.wire.varints cimport U8, Kind, encode, packed_size, varint_size, write_varint

from bridge.c10.errors import EnforceNotMet

cdef extern from "Python.h":
    Py_ssize_t Py_SIZE(PyObject*)
    char* c_bytes "PyBytes_AS_STRING"(PyObject*)


def varint(value: int) -> bytes:
    """Encode an int; a negative one as the ten bytes of its 64-bit two's complement.

    >>> varint(300).hex(), len(varint(-1))
    ('ac02', 10)
    """
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint_field(number: int, value: int) -> bytes:
    """Encode a field whose value is one int."""
    return varint(number << 3) + varint(value)


def length_head(number: int, nbytes: int) -> bytes:
    """Encode the tag and the length of a length-delimited field of `nbytes`."""
    return varint(number << 3 | 2) + varint(nbytes)


def tagged(number: int, payload: bytes) -> bytes:
    """Encode a length-delimited field."""
    return length_head(number, len(payload)) + payload


def packed_nbytes(TensorImpl impl not None, int64_t begin, int64_t n) -> int:
    """Return the bytes that the elements [begin, begin + n) take in a message.

    The size of a string includes its tag. Raises EnforceNotMet: Caffe2's messages have no elements
    of this type, or the tensor is not allocated.
    """
    cdef char* data
    cdef Kind kind = U8
    cdef int width
    cdef int64_t nbytes
    cdef Py_ssize_t first
    impl = seen(impl)
    owner = elements_at(impl, begin, n, &data)
    data += begin * impl.c_dtype.itemsize
    width = width_of(impl.c_dtype, &kind)
    if width > 0 or not n:
        return n * impl.c_dtype.itemsize
    if width < 0:
        first = impl.offset + begin
        return _strings_nbytes(_strings(owner, &first, n), first, n)
    if n < RELEASE_GIL_NBYTES or storage_flags(impl) & BORROWED:
        return packed_size(kind, data, n)
    with nogil:
        nbytes = packed_size(kind, data, n)
    return nbytes


def joined(
    bytes head not None,
    TensorImpl impl not None,
    int64_t begin,
    int64_t n,
    int64_t nbytes,
    bytes tail not None,
) -> bytes:
    """Return `head`, the elements [begin, begin + n) in `nbytes`, and `tail` as one `bytes`.

    Raises EnforceNotMet: the elements do not take `nbytes` any more. MemoryError.
    """
    cdef char* data
    cdef Kind kind = U8
    cdef int width
    cdef Py_ssize_t before = len(head), first
    cdef bytes made = PyBytes_FromStringAndSize(NULL, before + nbytes + len(tail))
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(made)
    cdef int64_t in_memory
    cdef bint fits
    cdef TensorImpl shared = impl
    impl = seen(impl)
    owner = elements_at(impl, begin, n, &data)
    data += begin * impl.c_dtype.itemsize
    width = width_of(impl.c_dtype, &kind)
    advise_huge_pages(out, before + nbytes)
    memcpy(out, PyBytes_AS_STRING(head), before)
    memcpy(out + before + nbytes, PyBytes_AS_STRING(tail), len(tail))
    if width < 0:
        first = impl.offset + begin
        fits = not n or _write_strings(
            _strings(owner, &first, n), first, n, out + before, nbytes)
    elif nbytes < RELEASE_GIL_NBYTES or storage_flags(impl) & BORROWED:
        in_memory = n * impl.c_dtype.itemsize
        with cython.critical_section(shared, impl.storage):     # as one feed has left it
            fits = _write(width, kind, data, n, in_memory, out + before, nbytes)
    else:
        in_memory = n * impl.c_dtype.itemsize
        with nogil:
            fits = _write(width, kind, data, n, in_memory, out + before, nbytes)
    if not fits:
        raise EnforceNotMet("The tensor changed while it was being written.", "Blob.serialize")
    return made


cdef bint _write(
    int width, Kind kind, const char* data, int64_t n, int64_t in_memory, uint8_t* out,
    int64_t nbytes,
) noexcept nogil:
    if width == 0:
        return encode(kind, data, n, out, nbytes)
    if in_memory != nbytes:
        return False
    if nbytes:                  # without elements there may be no memory, and memcpy takes no NULL
        memcpy(out, data, nbytes)
    return True


cdef list _strings(object owner, Py_ssize_t* first, int64_t n):
    """Return a list with the strings of the Elements `owner` from place `first` of it on.

    Where other threads change that of the Elements, the strings are referred to by a list of their
    own, and `first` is changed to its first place.
    """
    cdef list items = (<Elements?>owner).items
    if FREE_THREADED:
        items = items[first[0]:first[0] + n]
        first[0] = 0
    return items


cdef int64_t _strings_nbytes(list items, Py_ssize_t begin, int64_t n) except -1:
    cdef int64_t nbytes = n
    cdef int64_t size
    cdef Py_ssize_t i
    if begin + n > PyList_GET_SIZE(items):
        raise EnforceNotMet("The tensor changed while it was being written.", "Blob.serialize")
    for i in range(begin, begin + n):
        size = Py_SIZE(PyList_GET_ITEM(items, i))
        nbytes += varint_size(size) + size
    return nbytes


cdef bint _write_strings(
    list items, Py_ssize_t begin, int64_t n, uint8_t* out, int64_t nbytes,
) noexcept:
    cdef uint8_t* end = out + nbytes
    cdef int64_t size
    cdef PyObject* item
    cdef Py_ssize_t i
    if begin + n > PyList_GET_SIZE(items):
        return False
    for i in range(begin, begin + n):
        item = PyList_GET_ITEM(items, i)
        size = Py_SIZE(item)
        if end - out < 1 + varint_size(size) + size:
            return False
        out[0] = STRING_TAG
        out = write_varint(out + 1, end, size)
        memcpy(out, c_bytes(item), size)
        out += size
    return out == end
