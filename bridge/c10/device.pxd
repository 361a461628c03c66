# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t

cdef class Device(str):
    cdef readonly object type   # DeviceType
    cdef int32_t c_type         # its DLPack number
    cdef int32_t c_index        # -1: the framework's current device of that type

cdef Device device_of(int32_t device_type, int32_t index)
cpdef Device as_device(object spec)
cdef bint host_accessible(int32_t device_type) noexcept nogil
