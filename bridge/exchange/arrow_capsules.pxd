# SPDX-License-Identifier: Apache-2.0
from bridge.exchange.arrow_abi cimport ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowSchema

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
