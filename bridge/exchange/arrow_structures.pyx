# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Arrow's structures: taking them over from their PyCapsules, and what an ArrowSchema says.

A structure is moved: copied, and marked as released in the capsule, which then leaves it alone
(Arrow's PyCapsule interface, "Capsule lifetime"). It is released once, by whoever has it.

The producer is not trusted. Numbers have plain memory, and so have lists of one size of them, whose
sizes are dimensions. All other types are refused, with the call that makes numbers of them.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcmp, memcpy, strncmp

from bridge.c10.type_meta cimport TypeMeta, as_type

cdef extern from "<string.h>":
    size_t strnlen(const char*, size_t)

cdef enum:
    MAX_FORMAT = 64             # characters of a format that an error quotes
    DIGIT_0 = 48
    N_CODES = 128               # of ASCII

# The format of an element type -> its TypeMeta
cdef dict _TYPES = {
    b"c": as_type("int8"), b"s": as_type("int16"), b"i": as_type("int32"), b"l": as_type("int64"),
    b"C": as_type("uint8"), b"S": as_type("uint16"), b"I": as_type("uint32"),
    b"L": as_type("uint64"), b"e": as_type("float16"), b"f": as_type("float32"),
    b"g": as_type("float64"), b"b": as_type("bool"),
}
cdef TypeMeta _INT8 = as_type("int8")
cdef TypeMeta _BOOL = as_type("bool")

_AS_INTEGERS = "Take the integers: cast to int32 or int64, or to_physical() in polars."
_AS_LIST = "bridge.asarray takes a list of them: to_pylist(), or to_list() in polars."
# Beginnings of formats of other types -> what they are, and what to do. The first that fits.
cdef tuple _REFUSED = (
    (b"td", "dates", _AS_INTEGERS),
    (b"ts", "timestamps", _AS_INTEGERS),
    (b"tt", "times", _AS_INTEGERS),
    (b"tD", "durations", _AS_INTEGERS),
    (b"ti", "intervals", "Take their parts as integers."),
    (b"d:", "decimals", "Cast them to float64."),
    (b"u", "strings", _AS_LIST),
    (b"U", "strings", _AS_LIST),
    (b"vu", "strings", _AS_LIST),
    (b"z", "bytes", _AS_LIST),
    (b"Z", "bytes", _AS_LIST),
    (b"vz", "bytes", _AS_LIST),
    (b"w:", "bytes", _AS_LIST),
    (b"+l", "lists of any length", "Cast to lists of one size, if they have one."),
    (b"+L", "lists of any length", "Cast to lists of one size, if they have one."),
    (b"+v", "lists of any length", "Cast to lists of one size, if they have one."),
    (b"+s", "structures", "Take a field."),
    (b"+m", "maps", "Take the keys or the items."),
    (b"+u", "a union of types", "Take a field."),
    (b"+r", "run-end encoded", "Decode it, as with pyarrow.compute.run_end_decode."),
)


@cython.final
cdef class Field:
    """The element type and the dimensions of an Arrow array of numbers."""


cdef bint is_struct(const ArrowSchema* schema) noexcept:
    """Return whether a schema is of structures, as those of tables are."""
    return schema.format != NULL and schema.format[0] == b"+" and schema.format[1] == b"s" \
        and schema.dictionary == NULL


cdef list read_columns(const ArrowSchema* schema, object source):
    """Return the Field of each column of a table. Raises BufferError: as `read_field`, or none."""
    cdef int64_t i
    if schema.n_children < 1 or schema.n_children > MAX_LIST or schema.children == NULL:
        raise BufferError(
            f"The Arrow table of {source.__name__} has {schema.n_children} columns.")
    return [read_field(schema.children[i], source) for i in range(schema.n_children)]


cdef Field read_field(const ArrowSchema* schema, object source):
    """Return what a schema says of an array of numbers.

    Raises BufferError: not numbers, or a broken schema.
    """
    cdef Field field
    cdef TypeMeta dtype
    cdef unsigned char code
    if schema != NULL and schema.release != NULL and schema.format != NULL \
            and schema.metadata == NULL and schema.dictionary == NULL:
        code = <unsigned char>schema.format[0]
        if code < N_CODES and _plain[code] != NULL and schema.format[1] == 0:
            return <Field>_plain[code]
    field = _new_field()
    while True:
        _check(schema, source)
        if schema.format[0] != b"+" or schema.format[1] != b"w":
            break
        schema = _enter_list(field, schema, source)
    if schema.format[0] == b"n" and schema.format[1] == 0:
        field.all_null = True
        return field
    dtype = None
    if schema.format[0] and not schema.format[1]:
        dtype = <TypeMeta>_TYPES.get(schema.format[:1])
    if dtype is None:
        _refuse(schema, source)
    field.bits = dtype is _BOOL
    if dtype is _INT8 and schema.metadata != NULL \
            and _metadata(schema, b"ARROW:extension:name", source) == b"arrow.bool8":
        field.bool8 = True
        dtype = _BOOL
    field.dtype = dtype
    field.permuted = field.order != sorted(field.order)
    return field


cdef Field _new_field():
    cdef Field field = Field.__new__(Field)
    field.lists = []
    field.dims = []
    field.order = []
    return field


# The fields of plain numbers by the one character of their format, kept by `_plain_fields`.
cdef (void*)[N_CODES] _plain
cdef list _plain_fields = []
for _code, _dtype in _TYPES.items():
    _field = _new_field()
    (<Field>_field).dtype = <TypeMeta>_dtype
    (<Field>_field).bits = _dtype is _BOOL
    _plain_fields.append(_field)
    _plain[ord(_code)] = <void*>_field


cdef int _check(const ArrowSchema* schema, object source) except -1:
    """Refuse a schema that is missing, released or without format, and dictionaries."""
    if schema == NULL or schema.release == NULL or schema.format == NULL:
        what = "is missing (NULL)" if schema == NULL else \
            "was released" if schema.release == NULL else "has no format (NULL)"
        raise BufferError(f"An Arrow schema of {source.__name__} {what}.")
    if schema.dictionary != NULL:
        raise BufferError(
            f"The Arrow data of {source.__name__} is dictionary-encoded: numbers that stand for "
            "values. Decode it, as with dictionary_decode(), or cast it to the type of its values.")
    return 0


cdef str _format(const ArrowSchema* schema):
    return repr(schema.format[:strnlen(schema.format, MAX_FORMAT)].decode("utf-8", "replace"))


cdef int _refuse(const ArrowSchema* schema, object source) except -1:
    """Raise BufferError for a format that is not of numbers."""
    for start, what, how in _REFUSED:
        if strncmp(schema.format, <const char*><bytes>start, len(<bytes>start)) == 0:
            raise BufferError(
                f"The Arrow data of {source.__name__} is not numbers: {what} (format "
                f"{_format(schema)}). {how}")
    raise BufferError(
        f"The Arrow format {_format(schema)} of {source.__name__} is not one of numbers.")


cdef const ArrowSchema* _enter_list(
    Field field, const ArrowSchema* schema, object source,
) except? NULL:
    """Add the dimensions of a list of one size to `field`; return the schema of its elements."""
    cdef int64_t size = _list_size(schema, source)
    cdef Py_ssize_t before = len(field.dims)
    if schema.n_children != 1 or schema.children == NULL:
        raise BufferError(
            f"The Arrow schema {_format(schema)} of {source.__name__} has {schema.n_children} "
            "children, and a list has one.")
    if len(field.lists) >= MAX_LISTS:
        raise BufferError(
            f"The Arrow data of {source.__name__} has lists in lists, more than {MAX_LISTS} deep.")
    field.lists.append(size)
    shape, order = [size], [0]
    if schema.metadata != NULL \
            and _metadata(schema, b"ARROW:extension:name", source) == b"arrow.fixed_shape_tensor":
        shape, order = _tensor_shape(
            _metadata(schema, b"ARROW:extension:metadata", source), size, source)
    field.dims.extend(shape)
    field.order.extend([before + place for place in order])
    return schema.children[0]


cdef int64_t _list_size(const ArrowSchema* schema, object source) except -1:
    """Return N of the format ``+w:N``."""
    cdef const char* digit = schema.format + 3
    cdef int64_t size = 0
    if schema.format[2] == b":" and digit[0]:
        while DIGIT_0 <= digit[0] <= DIGIT_0 + 9 and size <= MAX_LIST:
            size = 10 * size + (digit[0] - DIGIT_0)
            digit += 1
        if digit[0] == 0 and size <= MAX_LIST:
            return size
    raise BufferError(
        f"The Arrow format {_format(schema)} of {source.__name__} does not tell the size of its "
        "lists.")


cdef bytes _metadata(const ArrowSchema* schema, bytes wanted, object source):
    """Return the value of a key of a schema's metadata; None if it is not there."""
    cdef const char* at = schema.metadata
    cdef int32_t n, length, i
    cdef bint found = False
    memcpy(&n, at, 4)
    at += 4
    for i in range(2 * n if 0 <= n < MAX_LIST // 2 else -1):
        memcpy(&length, at, 4)
        at += 4
        if length < 0:
            n = -1
            break
        if i % 2 == 0:
            found = length == len(wanted) and memcmp(at, <const char*>wanted, length) == 0
        elif found:
            return at[:length]
        at += length
    if n < 0:
        raise BufferError(f"The metadata of the Arrow schema of {source.__name__} is broken.")
    return None


def _tensor_shape(text, size, source):
    """Return (shape, permutation) of an ``arrow.fixed_shape_tensor`` of `size` elements."""
    from json import loads
    try:
        found = loads(text or b"")
        shape = found["shape"]
        order = found.get("permutation")
        order = list(range(len(shape))) if order is None else order
        count = 1
        for n in shape:
            if type(n) is not int or not 0 <= n <= MAX_LIST:
                raise ValueError(f"{n!r} is not a size.")
            count *= n
        if count != size:
            raise ValueError(f"the lists have {size} elements.")
        if sorted(order) != list(range(len(shape))) or not all(type(n) is int for n in order):
            raise ValueError("the permutation is not one.")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BufferError(
            f"The arrow.fixed_shape_tensor of {source.__name__} has the description "
            f"{(text or b'')[:200]!r}, which fits no tensor: {error}") from error
    return shape, order


# Capsules.

@cython.final
@cython.freelist(64)
cdef class ArrowOwner:
    """The owner of an imported ArrowArray; its deallocation releases the array, once."""

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)


@cython.final
cdef class OwnedSchema:
    """An ArrowSchema that is released with this object."""

    def __dealloc__(self):
        if self.schema.release != NULL:
            self.schema.release(&self.schema)


@cython.final
cdef class OwnedStream:
    """An ArrowArrayStream that is released with this object."""

    def __dealloc__(self):
        if self.stream.release != NULL:
            self.stream.release(&self.stream)

    cdef OwnedSchema schema(self):
        """Return the schema of all chunks. Raises BufferError: the stream failed."""
        cdef OwnedSchema out = OwnedSchema.__new__(OwnedSchema)
        cdef int status
        # without the GIL: the stream may compute in threads that wait for it
        with nogil:
            status = self.stream.get_schema(&self.stream, &out.schema)
        self.check(status)
        if out.schema.release == NULL:
            raise BufferError(f"The Arrow stream of {self.source.__name__} returned no schema.")
        return out

    cdef ArrowOwner chunk(self):
        """Return the next chunk; None at the end. Raises BufferError: the stream failed."""
        cdef ArrowOwner out = ArrowOwner.__new__(ArrowOwner)
        cdef int status
        out.source = self.source
        with nogil:
            status = self.stream.get_next(&self.stream, &out.array)
        self.check(status)
        return None if out.array.release == NULL else out

    cdef int check(self, int status) except -1:
        """Raise BufferError with the stream's own message if `status` is not 0."""
        cdef const char* text = NULL
        if status == 0:
            return 0
        if self.stream.get_last_error != NULL:
            with nogil:
                text = self.stream.get_last_error(&self.stream)
        why = f"error {status}" if text == NULL else (<bytes>text).decode("utf-8", "replace")
        raise BufferError(f"The Arrow stream of {self.source.__name__} failed: {why}")


cdef void* _pointer(object capsule, const char* name, object source) except NULL:
    if not PyCapsule_IsValid(capsule, name):
        raise BufferError(
            f"{source.__name__} returned {capsule!r}, not a capsule of the name "
            f"{(<bytes>name).decode()!r}.")
    return PyCapsule_GetPointer(capsule, name)


cdef int _released(object source) except -1:
    raise BufferError(
        f"The Arrow structure of {source.__name__} was released already. Ask for a new one.")


cdef ArrowSchema* schema_of(object capsule, object source) except NULL:
    """Return the schema in a capsule, which releases it. Raises BufferError: there is none."""
    cdef ArrowSchema* schema = <ArrowSchema*>_pointer(capsule, "arrow_schema", source)
    if schema.release == NULL:
        _released(source)
    return schema


cdef ArrowOwner _moved(ArrowArray* array, object source):
    cdef ArrowOwner owner = ArrowOwner.__new__(ArrowOwner)
    owner.source = source
    if array.release == NULL:
        _released(source)
    owner.array = array[0]
    array.release = NULL
    return owner


cdef ArrowOwner own_array(object capsule, object source):
    """Take over the array in a capsule. Raises BufferError: there is none."""
    return _moved(<ArrowArray*>_pointer(capsule, "arrow_array", source), source)


cdef ArrowOwner own_device_array(object capsule, object source, ArrowDeviceArray* device):
    """Take over the array in a capsule; `device` receives the rest of the structure."""
    cdef ArrowDeviceArray* found = <ArrowDeviceArray*>_pointer(
        capsule, "arrow_device_array", source)
    device[0] = found[0]
    return _moved(&found.array, source)


cdef OwnedStream own_stream(object capsule, object source):
    """Take over the stream in a capsule. Raises BufferError: there is none, or it is broken."""
    cdef ArrowArrayStream* found = <ArrowArrayStream*>_pointer(
        capsule, "arrow_array_stream", source)
    cdef OwnedStream owner = OwnedStream.__new__(OwnedStream)
    owner.source = source
    if found.release == NULL:
        _released(source)
    owner.stream = found[0]
    found.release = NULL
    if owner.stream.get_schema == NULL or owner.stream.get_next == NULL:
        raise BufferError(
            f"The Arrow stream of {source.__name__} is broken: a function that must exist is NULL.")
    return owner
