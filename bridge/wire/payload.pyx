# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Values of a tensor from the bytes of a message into its memory, at the speed of memory.

No list of numbers is made. Floating-point values are copied as they are, integers go through
`varints`. Both ends are checked at every step, since other threads run while much is copied.
"""

cimport cython
from cpython.list cimport PyList_GET_SIZE, PyList_New
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from bridge.c10.allocator cimport DataPtr
from bridge.c10.pages cimport zero_pages
from bridge.c10.storage cimport Elements
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl
from bridge.c10.type_meta cimport TypeMeta, string_type
from bridge.wire.varints cimport BOOL, I8, I16, I32, I64, U8, U16, Kind, decode, read_varint

from bridge.c10.errors import EnforceNotMet, EnforceTypeError

cdef extern from "Python.h":
    PyObject* PyList_GET_ITEM(list, Py_ssize_t)
    void PyList_SET_ITEM(list, Py_ssize_t, PyObject*)
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char*, Py_ssize_t) except NULL

cdef dict _KIND_OF = {
    "bool": BOOL, "uint8": U8, "int8": I8, "uint16": U16, "int16": I16, "int32": I32,
    "int64": I64, "float16": U16,   # a half is written as its sixteen bits
}


cdef Coding coding_of(TypeMeta dtype, Kind* kind) except *:
    """How a type of Caffe2's is coded; EnforceNotMet where Caffe2 has no such type."""
    if dtype is string_type:
        return STRING
    if dtype.name == "float32" or dtype.name == "float64":
        return FIXED
    found = _KIND_OF.get(dtype.name)
    if found is None:
        raise EnforceTypeError(f"Caffe2's messages have no elements of {dtype}.")
    kind[0] = found
    return VARINT


@cython.final
cdef class Source:
    """The bytes that a message is read from."""

    def __init__(self, data):
        if data is None:
            raise TypeError("None has no bytes")
        self.view = data
        self.begin = &self.view[0] if self.view.shape[0] else NULL
        self.end = self.begin + self.view.shape[0]


cdef Payload new_payload(Source source, int itemsize):
    cdef Payload payload = Payload.__new__(Payload)
    payload.source = source
    payload.itemsize = itemsize
    return payload


@cython.final
cdef class Payload:
    """The values of one repeated field of a message, still in its bytes."""

    def __init__(self):
        raise TypeError("A Payload comes with a message that was read.")

    def __dealloc__(self):
        free(self.ranges)

    cdef int add(self, const uint8_t* at, int64_t nbytes, int64_t n, bint packed) except -1:
        cdef Range* last = self.ranges + self.used - 1
        cdef Range* grown
        self.n += n
        if self.used and not packed and not last.packed and last.at + last.nbytes == at:
            last.nbytes += nbytes
            last.n += n
            return 0
        if self.used == self.room:
            self.room = 2 * self.room + 4
            grown = <Range*>realloc(self.ranges, self.room * sizeof(Range))
            if grown == NULL:
                self.room = self.used
                raise MemoryError
            self.ranges = grown
        self.ranges[self.used] = Range(at, nbytes, n, packed)
        self.used += 1
        return 0

    def into(self, TensorImpl impl not None, int64_t begin):
        """Copy the values into a contiguous tensor on the CPU, from its element `begin` on.

        Raises EnforceNotMet: it has no room for them, or its type is none that stands like this.
        """
        cdef char* data = elements_at(impl, begin, self.n)
        cdef Kind kind = U8
        cdef Coding coding = coding_of(impl.c_dtype, &kind)
        cdef int64_t itemsize = impl.c_dtype.itemsize
        cdef Py_ssize_t i
        cdef int64_t done = 0
        # -1 of strings, 0 of varints
        if self.itemsize != (-1 if coding == STRING else 0 if coding == VARINT else itemsize):
            raise EnforceNotMet(
                f"These values are none of {impl.c_dtype}, which the tensor holds by now.", "Blob.deserialize")
        if coding == STRING:
            _put_strings(self, impl, begin)
            return
        _keep = impl.storage.ctx     # the memory stays where it is until we are through
        for i in range(self.used):
            done += _read(&self.ranges[i], self.itemsize, kind,
                          data + (begin + done) * itemsize)


cdef char* elements_at(TensorImpl impl, int64_t begin, int64_t n) except? NULL:
    """The memory of a tensor that has the elements [begin, begin + n), row after row."""
    cdef char* data = impl.data("Blob")
    if not impl.flags & CONTIGUOUS or begin < 0 or n < 0 or n > impl.c_numel - begin:
        raise EnforceNotMet(
            f"Elements {begin} to {begin + n} are not those of a contiguous tensor of "
            f"{impl.c_numel}.", "Blob")
    return data


cdef int64_t _read(Range* part, int itemsize, Kind kind, char* out) except -1:
    cdef int64_t n
    if part.nbytes > WITHOUT_GIL:
        with nogil:
            n = _read_range(part, itemsize, kind, out)
    else:
        n = _read_range(part, itemsize, kind, out)
    if n != part.n:
        raise EnforceNotMet("The bytes changed while they were read.", "Blob.deserialize")
    return n


cdef int64_t _read_range(Range* part, int itemsize, Kind kind, char* out) noexcept nogil:
    cdef const uint8_t* at = part.at
    cdef const uint8_t* end = part.at + part.nbytes
    cdef const uint8_t* value
    cdef uint64_t tag = 0
    cdef int64_t i = 0
    cdef int width = 1 if kind <= I8 else 2 if kind <= I16 else 4 if kind == I32 else 8
    if part.packed and itemsize:
        memcpy(out, at, part.nbytes)
        return part.n
    if part.packed:
        return decode(kind, at, part.nbytes, out, part.n)
    while at != NULL and at < end and i < part.n:
        value = read_varint(at, end, &tag)
        if value == NULL:
            return -1
        if itemsize:
            if end - value < itemsize:
                return -1
            memcpy(out + i * itemsize, value, itemsize)
            at = value + itemsize
        else:
            at = read_varint(value, end, &tag)
            if at == NULL or decode(kind, value, at - value, out + i * width, 1) != 1:
                return -1
        i += 1
    return i if at == end else -1


cdef int _put_strings(Payload self, TensorImpl impl, int64_t begin) except -1:
    cdef Elements elements = impl.storage.ctx if self.n else None
    cdef Py_ssize_t first = impl.offset + begin
    cdef Py_ssize_t i
    cdef int64_t n = 0
    cdef const uint8_t* at
    cdef const uint8_t* end
    cdef uint64_t size = 0
    cdef PyObject* old
    cdef list found = PyList_New(self.n)
    for i in range(self.used):
        at = self.ranges[i].at
        end = at + self.ranges[i].nbytes
        while n < self.n:
            if end - at >= 2 and at[0] == STRING_TAG and at[1] < 0x80:
                size = at[1]
                at += 2
            else:
                at = read_varint(at, end, &size)
                at = read_varint(at, end, &size) if at != NULL else NULL
            if at == NULL or size > <uint64_t>(end - at):
                break
            PyList_SET_ITEM(found, n, new_bytes(<const char*>at, size))
            n += 1
            at += size
    if n != self.n:
        raise EnforceNotMet("The bytes changed while they were read.", "Blob.deserialize")
    if n and first + n > PyList_GET_SIZE(elements.items):
        raise EnforceNotMet("The tensor changed while it was filled.", "Blob.deserialize")
    # Exchanged rather than assigned, so that each string is touched once: the old ones go with
    # the list that was made for the new.
    for i in range(n):
        old = PyList_GET_ITEM(elements.items, first + i)
        PyList_SET_ITEM(elements.items, first + i, PyList_GET_ITEM(found, i))
        PyList_SET_ITEM(found, i, old)
    return 0


def copy_raw(
    Source source not None, int64_t offset, int64_t nbytes, TensorImpl impl not None, int64_t begin,
):
    """Copy values that stand in the message as in memory into a tensor on the CPU."""
    cdef int64_t itemsize = impl.c_dtype.itemsize
    cdef char* data = elements_at(impl, begin, nbytes // itemsize)
    cdef const uint8_t* at = source.begin + offset
    cdef int64_t i
    _keep = impl.storage.ctx
    if offset < 0 or nbytes % itemsize or nbytes > source.end - at:
        raise EnforceNotMet(f"{nbytes} bytes are no elements of {impl.c_dtype}.", "Blob")
    if impl.c_dtype.name == "bool":
        for i in range(nbytes):
            data[begin + i] = at[i] != 0
        return
    with nogil:
        memcpy(data + begin * itemsize, at, nbytes)


def zero(TensorImpl impl not None):
    """Make new memory on the CPU all zeros, without using it where it is large."""
    cdef char* data = impl.data("Blob")
    cdef int64_t nbytes = impl.c_numel * impl.c_dtype.itemsize
    if not impl.c_dtype.c_is_pod or not nbytes:
        return
    owner = impl.storage.ctx
    if type(owner) is DataPtr and (<DataPtr>owner).allocator.builtin:
        zero_pages(data, nbytes)
    else:
        memset(data, 0, nbytes)     # whose memory it is, and of what kind, is not known
