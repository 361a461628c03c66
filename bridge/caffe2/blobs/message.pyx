# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""BlobProto and the messages in it, read in place: values are not copied.

Accepts the messages that protobuf's C++ library accepts, and no others: fields in any order,
unknown fields skipped, the last of several values used, repeated fields and messages merged, packed
or not, unknown enum values ignored, groups at most 100 deep, required fields present. Memory is
allocated in proportion to the bytes of a message only, never to a number in it.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from bridge.wire.decoding cimport (
    BYTES,
    FIXED32,
    FIXED64,
    STRING_TAG,
    VARINT,
    Field,
    Payload,
    Source,
    add_values,
    malformed,
    new_payload,
    next_field,
    span,
)
from bridge.wire.varints cimport read_varint

from bridge.c10.errors import EnforceTypeError, EnforceValueError

cdef enum:
    MAX_NDIM = 4096         # far more than any tensor has; bounds the memory of a shape


cdef const uint8_t* _strings(
    Payload payload, Field* field, const uint8_t* stop,
) except NULL:
    """Add a string and the short strings of the field after it; return where they end."""
    cdef const uint8_t* at = field.stop
    cdef int64_t n = 1
    while stop - at >= 2 and at[0] == STRING_TAG and at[1] < 0x80 and stop - at - 2 >= at[1]:
        at += 2 + at[1]
        n += 1
    payload.add(field.tag, at - field.tag, n, False)
    return at


cdef int _dims(Source source, list dims, Field* field) except -1:
    cdef const uint8_t* at = field.at
    cdef const uint8_t* end = field.stop
    cdef uint64_t value = 0
    if field.wire != VARINT and field.wire != BYTES:
        return 0
    while at < end:
        at = read_varint(at, end, &value)
        if at == NULL:
            raise malformed(source, field.at, "a dimension is cut short")
        if len(dims) == MAX_NDIM:
            raise malformed(source, field.at, f"there are more than {MAX_NDIM} dimensions")
        dims.append(<int64_t>value)
    return 0


cdef int32_t _enum(Field* field, int32_t now, uint32_t known) noexcept:
    """Return the new value of an enum field, whose unknown values are ignored.

    known: a bit for each known value.
    """
    cdef uint32_t value = <uint32_t>field.value
    if value <= 31 and (known >> value) & 1:
        return value
    return now


# pyi: @final
cdef class TensorMessage:
    """A TensorProto: the description of a tensor as attributes, its values as payloads.

    `byte_data` and `raw_data` are None or (offset, bytes) in `source`; `segment` is None or
    [begin, end), in elements.
    """

    # pyi: def __new__(cls, source: Source) -> TensorMessage: ...
    cdef readonly Source source
    cdef readonly list dims  # pyi: list[int]
    cdef readonly int data_type
    cdef readonly int storage_type
    cdef readonly Payload float_data
    cdef readonly Payload int32_data
    cdef readonly Payload string_data
    cdef readonly Payload double_data
    cdef readonly Payload int64_data
    cdef readonly tuple byte_data  # pyi: tuple[int, int] | None
    cdef readonly tuple raw_data  # pyi: tuple[int, int] | None
    cdef readonly int device_type
    cdef readonly int device_id
    cdef bint has_segment
    cdef object begin
    cdef object end

    def __cinit__(self, Source source not None):
        self.source = source
        self.dims = []
        self.data_type = 1
        self.storage_type = 1
        self.float_data = new_payload(source, 4)
        self.int32_data = new_payload(source, 0)
        self.string_data = new_payload(source, -1)
        self.double_data = new_payload(source, 8)
        self.int64_data = new_payload(source, 0)

    @property
    def segment(self) -> tuple[int, int] | None:
        """The range [begin, end) of elements that the message has; None: all."""
        return (self.begin, self.end) if self.has_segment else None

    cdef int read(self, const uint8_t* at, const uint8_t* stop, int depth) except -1:
        cdef Field field
        cdef Source source = self.source
        field.depth = depth
        while at < stop:
            at = next_field(source, at, stop, &field)
            if field.number == 1:
                _dims(source, self.dims, &field)
            elif field.number == 2 and field.wire == VARINT:
                # DataType: 0 to 14 without 11
                self.data_type = _enum(&field, self.data_type, 0x77FF)
            elif field.number == 12 and field.wire == VARINT:
                self.storage_type = _enum(&field, self.storage_type, 0x1E)
            elif field.number == 3:
                add_values(source, self.float_data, &field, FIXED32)
            elif field.number == 4:
                add_values(source, self.int32_data, &field, VARINT)
            elif field.number == 5 and field.wire == BYTES:
                self.byte_data = span(source, &field)
            elif field.number == 6 and field.wire == BYTES:
                at = _strings(self.string_data, &field, stop)
            elif field.number == 9:
                add_values(source, self.double_data, &field, FIXED64)
            elif field.number == 10:
                add_values(source, self.int64_data, &field, VARINT)
            elif field.number == 13 and field.wire == BYTES:
                self.raw_data = span(source, &field)
            elif field.number == 8 and field.wire == BYTES:
                self.read_device(field.at, at, depth + 1)
            elif field.number == 11 and field.wire == BYTES:
                self.has_segment = True
                self.read_segment(field.at, at, depth + 1)
            elif field.number == 14 and field.wire == BYTES:
                self.read_external(field.at, at, depth + 1)
        return 0

    cdef int read_device(self, const uint8_t* at, const uint8_t* stop, int depth) except -1:
        cdef Field field
        field.depth = depth
        while at < stop:
            at = next_field(self.source, at, stop, &field)
            if field.number == 1 and field.wire == VARINT:
                self.device_type = <int32_t>field.value
            elif field.number == 2 and field.wire == VARINT:
                self.device_id = <int32_t>field.value
        return 0

    cdef int read_segment(self, const uint8_t* at, const uint8_t* stop, int depth) except -1:
        cdef Field field
        field.depth = depth
        while at < stop:
            at = next_field(self.source, at, stop, &field)
            if field.number == 1 and field.wire == VARINT:
                self.begin = <int64_t>field.value
            elif field.number == 2 and field.wire == VARINT:
                self.end = <int64_t>field.value
        return 0

    cdef int read_external(self, const uint8_t* at, const uint8_t* stop, int depth) except -1:
        """Check the field external_data, which is not used: protobuf would check it."""
        cdef Field field
        cdef Payload strides = new_payload(self.source, 0)
        field.depth = depth
        while at < stop:
            at = next_field(self.source, at, stop, &field)
            if field.number == 4:
                add_values(self.source, strides, &field, VARINT)
        return 0

    cdef int require(self) except -1:
        if self.has_segment and (self.begin is None or self.end is None):
            raise EnforceValueError("The segment has no begin or no end.")
        return 0


@cython.final
cdef class QTensorMessage:
    """A QTensorProto: the description of a quantized tensor as attributes, its values as a payload.

    `scale` is rounded to a float, as in Caffe2.
    """

    # pyi: def __new__(cls, source: Source) -> QTensorMessage: ...
    cdef readonly Source source
    cdef readonly list dims  # pyi: list[int]
    cdef readonly int data_type
    cdef readonly double scale
    cdef readonly double bias
    cdef readonly Payload data
    cdef uint32_t present       # a bit for each required field that was read

    def __cinit__(self, Source source not None):
        self.source = source
        self.dims = []
        self.data_type = 2
        self.data = new_payload(source, 0)

    cdef int read(self, const uint8_t* at, const uint8_t* stop, int depth) except -1:
        cdef Field field
        cdef Source source = self.source
        cdef Payload unused = new_payload(source, 8)
        cdef double value = 0
        field.depth = depth
        while at < stop:
            at = next_field(source, at, stop, &field)
            if field.number == 1:
                _dims(source, self.dims, &field)
            elif (field.number == 2 or field.number == 5) and field.wire == VARINT:
                self.present |= 1 << field.number
            elif field.number == 3 and field.wire == FIXED64:
                memcpy(&value, field.at, 8)
                self.scale = <float>value
                self.present |= 1 << 3
            elif field.number == 4 and field.wire == FIXED64:
                memcpy(&self.bias, field.at, 8)
                self.present |= 1 << 4
            elif field.number == 6:
                add_values(source, self.data, &field, VARINT)
            elif field.number == 8 and field.wire == VARINT:
                self.data_type = _enum(&field, self.data_type, 0x77FF)
            elif field.number == 9 or field.number == 10:
                add_values(source, unused, &field, FIXED64)
        return 0

    cdef int require(self) except -1:
        for number, name in ((2, "precision"), (3, "scale"), (4, "bias"), (5, "is_signed")):
            if not (self.present >> number) & 1:
                raise EnforceValueError(f"The quantized tensor has no {name}.")
        return 0


@cython.final
cdef class BlobMessage:
    """A BlobProto: `type` and `content` as bytes, `tensor` and `qtensor`, which may be None.

    It keeps a reference to its bytes, any contiguous buffer. Raises EnforceNotMet, also a
    ValueError: the bytes are not a BlobProto; or a TypeError: they are not bytes.
    """

    cdef readonly Source source
    cdef readonly bytes type
    cdef readonly TensorMessage tensor  # pyi: TensorMessage | None
    cdef readonly QTensorMessage qtensor  # pyi: QTensorMessage | None
    cdef tuple content_span

    def __init__(self, data: Any) -> None:
        try:
            self.source = Source(data)
        except (TypeError, ValueError, BufferError) as cause:
            raise EnforceTypeError(
                f"A message is read from bytes, not from {type(data).__name__}.") from cause
        self.type = b""
        self.read(self.source.begin, self.source.end)
        if self.tensor is not None:
            self.tensor.require()
        if self.qtensor is not None:
            self.qtensor.require()

    @property
    def content(self) -> bytes:
        """The field `content`, copied; empty if it is absent."""
        if self.content_span is None:
            return b""
        offset, nbytes = self.content_span
        return PyBytes_FromStringAndSize(
            <const char*>self.source.begin + <int64_t>offset, nbytes)

    cdef int read(self, const uint8_t* at, const uint8_t* stop) except -1:
        cdef Field field
        cdef Source source = self.source
        field.depth = 0
        while at < stop:
            at = next_field(source, at, stop, &field)
            if field.wire != BYTES:
                continue
            if field.number == 2:
                self.type = PyBytes_FromStringAndSize(<const char*>field.at, field.value)
            elif field.number == 3:
                if self.tensor is None:
                    self.tensor = TensorMessage.__new__(TensorMessage, source)
                self.tensor.read(field.at, at, 1)
            elif field.number == 4:
                self.content_span = span(source, &field)
            elif field.number == 5:
                if self.qtensor is None:
                    self.qtensor = QTensorMessage.__new__(QTensorMessage, source)
                self.qtensor.read(field.at, at, 1)
        return 0
