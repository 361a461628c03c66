# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Arrow's PyCapsules: taking their structures over, to be released once, by whoever has them.

A structure is moved: copied, and marked as released in the capsule, which then leaves it alone
(Arrow's PyCapsule interface, "Capsule lifetime").
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid

from bridge.exchange.arrow_abi cimport ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowSchema


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
