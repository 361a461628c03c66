# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Decoding of a message, without copying: its fields one by one, and values into a tensor's memory.

The messages that protobuf's C++ library refuses are refused. Every length is compared with the
bytes that are left, so no input leads to a read outside of the message. Floating-point values are
copied, integers decoded by `varints`; there is no list of numbers in between. Source and
destination are checked at each step, since other threads run while much is copied.
"""

cimport cython
from cpython.list cimport PyList_GET_SIZE, PyList_New
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from bridge.c10.allocator cimport DataPtr
from bridge.c10.madvise cimport zero_pages
from bridge.c10.python_api cimport FREE_THREADED, RELEASE_GIL_NBYTES, PyList_GET_ITEM
from bridge.c10.storage cimport Elements, owner_of
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, seen
from bridge.c10.type_meta cimport TypeMeta, string_type
from bridge.wire.varints cimport (
    BOOL,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    Kind,
    count_packed,
    decode,
    read_varint,
)

from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError

cdef extern from "Python.h":
    void PyList_SET_ITEM(list, Py_ssize_t, PyObject*)
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char*, Py_ssize_t) except NULL

cdef enum:
    MAX_DEPTH = 100         # protobuf's own limit of groups in groups

cdef dict _KIND_OF = {
    "bool": BOOL, "uint8": U8, "int8": I8, "uint16": U16, "int16": I16, "int32": I32,
    "int64": I64, "float16": U16,   # float16 is encoded as its sixteen bits
}


cdef int width_of(TypeMeta dtype, Kind* kind) except -2:
    """Return how elements of a type are encoded: the bytes of each, as in memory; 0: as varints, of
    `kind`; -1: as strings, a length and bytes each.

    Raises EnforceTypeError: Caffe2's messages have no such elements.
    """
    if dtype is string_type:
        return -1
    if dtype.name == "float32" or dtype.name == "float64":
        return <int>dtype.itemsize
    found = _KIND_OF.get(dtype.name)
    if found is None:
        raise EnforceTypeError(f"Caffe2's messages cannot contain elements of {dtype}.")
    kind[0] = found
    return 0


@cython.final
cdef class Source:
    """The bytes that a message is read from."""

    def __init__(self, data: Any) -> None:
        if data is None:
            raise TypeError("A message is bytes, not None.")
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
    """The encoded values of one repeated field of a message."""

    def __init__(self):
        raise TypeError("A Payload is created by reading a message.")

    def __dealloc__(self):
        free(self.ranges)

    cdef int add(self, const uint8_t* at, int64_t nbytes, int64_t n, bint packed) except -1:
        """Add `n` values in `nbytes` at `at`, which are in `source`. Raises MemoryError."""
        cdef Range* last = self.ranges + self.used - 1 if self.used else NULL
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

    @property
    def span(self) -> tuple[int, int] | None:
        """(offset, bytes) of the values in `source` if they are there as in memory; else None."""
        if self.used != 1 or self.itemsize <= 0 or not self.ranges.packed:
            return None
        return self.ranges.at - self.source.begin, self.ranges.nbytes

    def into(self, TensorImpl impl not None, int64_t begin) -> None:
        """Decode the values into a contiguous tensor on the CPU, from its element `begin` on.

        Raises EnforceNotMet: too few elements, or a type that is encoded in another way.
        """
        cdef char* data
        cdef Kind kind = U8
        cdef int64_t itemsize
        cdef TensorImpl shared = impl
        impl = seen(impl)
        owner = elements_at(impl, begin, self.n, &data)     # until all values are decoded
        itemsize = impl.c_dtype.itemsize
        if self.itemsize != width_of(impl.c_dtype, &kind):
            raise EnforceNotMet(
                f"These values are not of {impl.c_dtype}, the type that the tensor has now.",
                "Blob.deserialize")
        if self.itemsize < 0:
            _put_strings(self, owner, impl.offset + begin)
            return
        data += begin * itemsize
        if self.n * itemsize > RELEASE_GIL_NBYTES:
            _read_all(self, kind, data, itemsize)
        else:       # in one step for those who fetch it
            with cython.critical_section(shared, impl.storage):
                _read_all(self, kind, data, itemsize)


cdef int _read_all(Payload self, Kind kind, char* data, int64_t itemsize) except -1:
    cdef Py_ssize_t i
    cdef int64_t done = 0
    for i in range(self.used):
        done += _read(&self.ranges[i], self.itemsize, kind, data + done * itemsize)
    return 0


cdef object elements_at(TensorImpl impl, int64_t begin, int64_t n, char** data):
    """Return the owner of the memory of a contiguous tensor with elements [begin, begin + n), and
    set `data` to the address of element 0.

    impl: no other thread changes it (`seen`). Raises EnforceNotMet: it is not contiguous, or has
    fewer elements, or no memory.
    """
    owner = impl.held(data, "Blob")
    if not impl.flags & CONTIGUOUS or begin < 0 or n < 0 or n > impl.c_numel - begin:
        raise EnforceNotMet(
            f"The tensor is not contiguous, or elements {begin} to {begin + n} are not among its "
            f"{impl.c_numel}.", "Blob")
    return owner


cdef int64_t _read(Range* part, int itemsize, Kind kind, char* out) except -1:
    cdef int64_t n
    if part.nbytes > RELEASE_GIL_NBYTES:
        with nogil:
            n = _read_range(part, itemsize, kind, out)
    else:
        n = _read_range(part, itemsize, kind, out)
    if n != part.n:
        raise EnforceNotMet("The bytes changed while they were being read.", "Blob.deserialize")
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


cdef int _put_strings(Payload self, object owner, Py_ssize_t first) except -1:
    """Set the strings from place `first` of the Elements `owner` on."""
    cdef Elements elements = owner if self.n else None
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
        raise EnforceNotMet("The bytes changed while they were being read.", "Blob.deserialize")
    if n and first + n > PyList_GET_SIZE(elements.items):
        raise EnforceNotMet("The tensor changed while it was being filled.", "Blob.deserialize")
    if FREE_THREADED:       # others look at the list
        if n:
            elements.items[first:first + n] = found
        return 0
    # Exchanged rather than assigned, so that each string is touched once: the old strings are freed
    # with the list `found`.
    for i in range(n):
        old = PyList_GET_ITEM(elements.items, first + i)
        PyList_SET_ITEM(elements.items, first + i, PyList_GET_ITEM(found, i))
        PyList_SET_ITEM(found, i, old)
    return 0


def copy_raw(
    Source source not None, int64_t offset, int64_t nbytes, TensorImpl impl not None, int64_t begin
) -> None:
    """Copy `nbytes` of raw values into a tensor on the CPU, from its element `begin` on.

    Raises EnforceNotMet: the bytes are not whole elements or not in `source`, or too few elements.
    """
    cdef int64_t itemsize
    cdef char* data
    cdef const uint8_t* at = source.begin + offset
    cdef TensorImpl shared = impl
    impl = seen(impl)
    itemsize = impl.c_dtype.itemsize
    _keep = elements_at(impl, begin, nbytes // itemsize, &data)
    if offset < 0 or nbytes % itemsize or nbytes > source.end - at:
        raise EnforceNotMet(
            f"{nbytes} bytes are not a number of elements of {impl.c_dtype}.", "Blob")
    if nbytes == 0:             # and maybe no memory: memcpy takes no NULL
        return
    data += begin * itemsize
    if nbytes > RELEASE_GIL_NBYTES and impl.c_dtype.name != "bool":
        with nogil:
            memcpy(data, at, nbytes)
        return
    with cython.critical_section(shared, impl.storage):     # in one step for those who fetch it
        _copy(data, at, nbytes, impl.c_dtype.name == "bool")


cdef int _copy(char* data, const uint8_t* at, int64_t nbytes, bint as_bools) noexcept:
    cdef int64_t i
    if not as_bools:
        memcpy(data, at, nbytes)
        return 0
    for i in range(nbytes):
        data[i] = at[i] != 0
    return 0


def zero(TensorImpl impl not None) -> None:
    """Set a new tensor on the CPU to zeros; large memory is not touched."""
    cdef char* data = impl.data("Blob")
    cdef int64_t nbytes = impl.c_numel * impl.c_dtype.itemsize
    if not impl.c_dtype.c_is_pod or not nbytes:
        return
    owner = owner_of(impl.storage)
    if type(owner) is DataPtr and (<DataPtr>owner).allocator.builtin:
        zero_pages(data, nbytes)
    else:
        memset(data, 0, nbytes)     # memory of unknown origin, perhaps not of the C library


# Fields.

cdef object malformed(Source source, const uint8_t* at, str what):
    """Return the error for bytes at `at` that are not a message."""
    return EnforceValueError(
        f"At byte {at - source.begin} of {source.end - source.begin}: {what}.")


cdef const uint8_t* _next(
    Source source, const uint8_t* at, const uint8_t* end, Field* field, bint within_group,
) except NULL:
    """Decode a field's tag and find its value; return where the next field begins."""
    cdef uint64_t tag = 0
    field.tag = at
    at = read_varint(at, end, &tag)
    if at == NULL or at - field.tag > 5:
        raise malformed(source, field.tag, "a field does not begin with a tag")
    field.number = <uint32_t>tag >> 3
    field.wire = tag & 7
    field.at = at
    if field.number == 0:
        raise malformed(source, field.tag, "a field has the number 0, which is not allowed")
    if field.wire == VARINT:
        at = read_varint(at, end, &field.value)
        if at == NULL:
            raise malformed(source, field.at, f"the number of field {field.number} is cut short")
    elif field.wire == FIXED32 or field.wire == FIXED64:
        if end - at < (4 if field.wire == FIXED32 else 8):
            raise malformed(source, field.at, f"the number of field {field.number} is cut short")
        at += 4 if field.wire == FIXED32 else 8
    elif field.wire == BYTES:
        at = read_varint(at, end, &field.value)
        if at == NULL or at - field.at > 5 or field.value > <uint64_t>(end - at):
            raise malformed(
                source, field.at, f"field {field.number} is longer than the message around it")
        field.at = at
        at += field.value
    elif field.wire == GROUP:
        at = _skip_group(source, at, end, field.number, field.depth + 1)
    elif not (field.wire == END_GROUP and within_group):
        raise malformed(
            source, field.tag, f"field {field.number} has the wire type {field.wire}, which "
            + ("ends a group that did not begin" if field.wire == END_GROUP else "does not exist"))
    field.stop = at
    return at


cdef const uint8_t* next_field(
    Source source, const uint8_t* at, const uint8_t* end, Field* field,
) except NULL:
    """Decode one field of a message and return where the next one begins.

    A group is one field. Raises EnforceValueError: the bytes are not a message.
    """
    return _next(source, at, end, field, False)


cdef const uint8_t* _skip_group(
    Source source, const uint8_t* at, const uint8_t* end, uint32_t number, int depth,
) except NULL:
    """Skip a group with all its fields; no message of Caffe2 or TensorFlow has one."""
    cdef Field field
    cdef const uint8_t* begin = at
    field.depth = depth
    if depth > MAX_DEPTH:
        raise malformed(source, at, f"groups are more than {MAX_DEPTH} deep")
    while at < end:
        at = _next(source, at, end, &field, True)
        if field.wire == END_GROUP:
            if field.number != number:
                raise malformed(
                    source, field.tag, f"group {number} ends as group {field.number}")
            return at
    raise malformed(source, begin, f"group {number} has no end")


cdef int add_values(Source source, Payload payload, Field* field, Wire wire) except -1:
    """Add the values of a repeated field of type `wire`, packed or not; ignore other wire types."""
    cdef int64_t nbytes = field.value
    cdef int64_t n
    cdef const uint8_t* at = field.at
    if field.wire == wire:
        payload.add(field.tag, field.stop - field.tag, 1, False)
    elif field.wire == BYTES:
        if wire == VARINT:
            if nbytes > RELEASE_GIL_NBYTES:
                with nogil:
                    n = count_packed(at, nbytes)
            else:
                n = count_packed(at, nbytes)
        else:
            n = nbytes // payload.itemsize if nbytes % payload.itemsize == 0 else -1
        if n < 0:
            raise malformed(source, at, f"the numbers of field {field.number} are cut short")
        if n:
            payload.add(at, nbytes, n, True)
    return 0


cdef tuple span(Source source, Field* field):
    """Return (offset, length) of the bytes of a length-delimited field."""
    return field.at - source.begin, <int64_t>field.value
