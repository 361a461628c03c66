# SPDX-License-Identifier: Apache-2.0
# The binary interface of Arrow's C data, C device data and C stream interfaces, declared here and
# nowhere else. As in the Arrow specification ("The Arrow C data interface" and the pages after it).
# A structure whose `release` is NULL was released; who moves a structure sets it in the source.

from libc.stdint cimport int32_t, int64_t

from bridge.c10.type_meta cimport TypeMeta

# ArrowSchema.flags
cdef enum:
    ARROW_NULLABLE = 2

ctypedef struct ArrowSchema:
    const char* format
    const char* name
    const char* metadata            # int32 pairs, then each key and value after its int32 length
    int64_t flags
    int64_t n_children
    ArrowSchema** children
    ArrowSchema* dictionary
    void (*release)(ArrowSchema*) noexcept
    void* private_data

ctypedef struct ArrowArray:
    int64_t length
    int64_t null_count              # -1: not counted
    int64_t offset                  # elements before the first, in each buffer
    int64_t n_buffers
    int64_t n_children
    const void** buffers            # the first is the bitmap of valid elements, NULL: all are
    ArrowArray** children
    ArrowArray* dictionary
    void (*release)(ArrowArray*) noexcept
    void* private_data

# Device types have the numbers of DLPack.
ctypedef struct ArrowDeviceArray:
    ArrowArray array
    int64_t device_id               # -1 for the CPU
    int32_t device_type
    void* sync_event                # of CUDA: a cudaEvent_t*; NULL: the memory is ready
    int64_t[3] reserved

ctypedef struct ArrowArrayStream:
    int (*get_schema)(ArrowArrayStream*, ArrowSchema* out) noexcept nogil
    int (*get_next)(ArrowArrayStream*, ArrowArray* out) noexcept nogil
    const char* (*get_last_error)(ArrowArrayStream*) noexcept nogil
    void (*release)(ArrowArrayStream*) noexcept
    void* private_data

cdef class ArrowOwner:
    cdef ArrowArray array
    cdef readonly object source     # the class of the object that the array came from

cdef class OwnedSchema:
    cdef ArrowSchema schema

cdef class OwnedStream:
    cdef ArrowArrayStream stream
    cdef object source
    cdef OwnedSchema schema(self)
    cdef ArrowOwner chunk(self)
    cdef int check(self, int status) except -1

cdef ArrowSchema* schema_of(object capsule, object source) except NULL
cdef ArrowOwner own_array(object capsule, object source)
cdef ArrowOwner own_device_array(object capsule, object source, ArrowDeviceArray* device)
cdef OwnedStream own_stream(object capsule, object source)

cdef enum:
    MAX_LIST = 0x7FFFFFFF       # elements of a list of one size
    MAX_LISTS = 64      # lists in lists; an array has no more dimensions in NumPy either

# What a schema says of an array of numbers.
cdef class Field:
    cdef TypeMeta dtype         # of the elements
    cdef bint all_null          # Arrow's null type: no element has a value
    cdef bint bits              # booleans of a bit each
    cdef bint bool8             # booleans of a byte each, any but 0 true
    cdef list lists             # sizes of the lists of one size, outermost first
    cdef list dims              # dimensions of a row as it lies in memory
    cdef list order             # of these dimensions, for the reader
    cdef bint permuted          # `order` is another than that in memory

cdef Field read_field(const ArrowSchema* schema, object source)
cdef list read_columns(const ArrowSchema* schema, object source)
cdef bint is_struct(const ArrowSchema* schema) noexcept
