# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Parse TensorFlow's TensorProto and TensorShapeProto without copying the values.

Field numbers follow tensor.proto and tensor_shape.proto, TensorFlow 2.21. Parsing follows
protobuf (`bridge.wire.decoding`): fields in any order, repeated ones packed or not; the last
value of a singular field counts, repeated fields and messages are merged, unknown fields are
skipped.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from bridge.wire.decoding cimport (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    Field,
    Payload,
    Source,
    Wire,
    add_values,
    malformed,
    new_payload,
    next_field,
    span,
)

# TensorFlow's tensors have at most 254 dimensions.
MAX_RANK = 254  # pyi: int
# protobuf limits a message to this size, and so its content.
MAX_NBYTES = (1 << 31) - 1  # pyi: int

cdef enum:
    MOST_DIMS = 4096        # bounds the memory that a hostile message can take
    VALUE_FIELDS = 18


@cython.final
cdef class ShapeMessage:
    """A parsed TensorShapeProto: `dims` (-1 where unknown), their `names`, and `unknown_rank`.

    Raises EnforceNotMet, also a ValueError: the bytes are not such a message.
    """

    cdef readonly list dims  # pyi: list[int]
    cdef readonly list names  # pyi: list[str]
    cdef readonly bint unknown_rank

    def __cinit__(self):
        self.dims = []
        self.names = []

    def __init__(self, Source source not None) -> None:
        self.read(source, source.begin, source.end, 0)

    cdef int read(
        self, Source source, const uint8_t* at, const uint8_t* stop, int depth,
    ) except -1:
        cdef Field field
        field.depth = depth
        while at < stop:
            at = next_field(source, at, stop, &field)
            if field.number == 2 and field.wire == BYTES:
                if len(self.dims) == MOST_DIMS:
                    raise malformed(source, field.at, f"there are more than {MOST_DIMS} dimensions")
                self.read_dim(source, field.at, at, depth + 1)
            elif field.number == 3 and field.wire == VARINT:
                self.unknown_rank = field.value != 0
        return 0

    cdef int read_dim(
        self, Source source, const uint8_t* at, const uint8_t* stop, int depth,
    ) except -1:
        cdef Field field
        cdef int64_t size = 0
        cdef bytes name = b""
        field.depth = depth
        while at < stop:
            at = next_field(source, at, stop, &field)
            if field.number == 1 and field.wire == VARINT:
                size = <int64_t>field.value
            elif field.number == 2 and field.wire == BYTES:
                name = (<const char*>field.at)[:field.value]
        self.dims.append(size)
        self.names.append(name.decode(errors="replace"))
        return 0


cdef Wire _wire(unsigned int number) noexcept:
    """Return the wire type of a single value of a field."""
    if number == 5 or number == 9:
        return FIXED32
    if number == 6 or number == 12:
        return FIXED64
    if number == 8:
        return BYTES
    return VARINT


@cython.final
cdef class TensorMessage:
    """A parsed TensorProto.

    `dtype` and `shape` are those of the message. `content` and `float8`, the fields of raw bytes,
    are (offset in the data, number of bytes), or None if absent. `data` is any contiguous buffer of
    bytes; it is shared and kept alive.

    Raises EnforceNotMet, also a ValueError: the bytes are not such a message.
    """

    cdef readonly Source source
    cdef readonly int64_t dtype
    cdef readonly ShapeMessage shape
    cdef readonly tuple content  # pyi: tuple[int, int] | None
    cdef readonly tuple float8  # pyi: tuple[int, int] | None
    cdef list payloads

    def __init__(self, data: Any) -> None:
        self.source = Source(data)
        self.shape = ShapeMessage.__new__(ShapeMessage)
        self.payloads = [None] * VALUE_FIELDS
        self.read(self.source.begin, self.source.end)

    def values(self, int field) -> Payload | None:
        """Return the Payload of a `*_val` field, by its number; None if the field is absent."""
        return self.payloads[field] if 0 <= field < VALUE_FIELDS else None

    cdef int read(self, const uint8_t* at, const uint8_t* stop) except -1:
        cdef Field field
        cdef Source source = self.source
        field.depth = 0
        while at < stop:
            at = next_field(source, at, stop, &field)
            if field.number == 1 and field.wire == VARINT:
                self.dtype = <int64_t>field.value
            elif field.number == 2 and field.wire == BYTES:
                self.shape.read(source, field.at, at, 1)
            elif field.number == 4 and field.wire == BYTES:
                self.content = span(source, &field)
            elif field.number == 18 and field.wire == BYTES:
                self.float8 = span(source, &field)
            elif 5 <= field.number <= 13 or field.number == 16 or field.number == 17:
                add_values(source, self.payload(field.number), &field, _wire(field.number))
        return 0

    cdef Payload payload(self, unsigned int number):
        cdef Payload found = self.payloads[number]
        cdef Wire wire = _wire(number)
        if found is None:
            found = new_payload(
                self.source,
                4 if wire == FIXED32 else 8 if wire == FIXED64 else -1 if wire == BYTES else 0)
            self.payloads[number] = found
        return found
