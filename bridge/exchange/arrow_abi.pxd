# SPDX-License-Identifier: Apache-2.0
# The binary interface of Arrow's C data, C device data and C stream interfaces, declared here and
# nowhere else. As in the Arrow specification ("The Arrow C data interface" and the pages after it).
# A structure whose `release` is NULL was released; who moves a structure sets it in the source.

from libc.stdint cimport int32_t, int64_t

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
