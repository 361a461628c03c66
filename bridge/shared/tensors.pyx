# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Tensors in segments: how they get there, and the rows that describe them.

A row is of int64: type (an index in a list), first byte of the storage, its number of bytes, 1 if
it is read-only, offset, number of dimensions, sizes, strides; the offset and the strides in
elements.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT64_MAX, int64_t, uintptr_t

from bridge.c10.copy cimport copy_elements
from bridge.c10.layout cimport block, checked_mul, checked_numel, extent
from bridge.c10.retained cimport retained_owner
from bridge.c10.storage cimport (
    EXTERNAL,
    READONLY,
    Storage,
    begin_of,
    flags_of,
    install,
    nbytes_of,
    new_storage,
    owner_of,
)
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, new_impl, seen, storage_of
from bridge.c10.type_meta cimport TypeMeta
from bridge.dlpack.abi cimport DL_CPU
from bridge.shared.segment cimport Segment, segment_at


def write_tensor(Segment segment, int64_t begin, TensorImpl source) -> None:
    """Copy the elements of a tensor, row-major, into a segment that is not sealed yet.

    Raises MemoryError: no room. EnforceNotMet: `source` has no plain memory.
    """
    cdef TensorImpl target
    cdef char* data
    cdef int64_t nbytes
    source = seen(source)
    if source.flags & CONTIGUOUS:
        owner = retained_owner(source, &data, "share")
        nbytes = source.c_numel * source.c_dtype.itemsize
        segment.put(data, nbytes, begin)
        del owner
        return
    nbytes = checked_mul(source.c_numel, source.c_dtype.itemsize)
    segment.make_room(nbytes, begin)
    target = _impl(segment, source.c_dtype, begin, nbytes, False)
    target.set_contiguous(source.c_sizes, source.ndim, source.c_numel)
    copy_elements(target, source, "share")


def impls(Segment segment, bytes table, list types: list[TypeMeta]) -> list[TensorImpl]:
    """Return the TensorImpls that a table of rows describes, in a list.

    types: the TypeMetas that the rows refer to. What this process may not write is read-only in
    any case.

    Raises BufferError: they are not all in the segment.
    """
    cdef const int64_t* row = <const int64_t*>PyBytes_AS_STRING(table)
    cdef int64_t words = PyBytes_GET_SIZE(table) // 8
    cdef list found = []
    cdef TensorImpl impl
    cdef int64_t n
    while words > 0:
        n = 6 + 2 * row[5] if words >= 6 and 0 <= row[5] <= 1 << 20 else -1
        if n < 0 or n > words or row[0] < 0 or row[0] >= len(types):
            raise _damaged()
        impl = _from_row(segment, row, types[row[0]])
        found.append(impl)
        row += n
        words -= n
    return found


cdef object _damaged():
    return BufferError("The description of the segment's tensors is damaged.")


cdef TensorImpl _impl(
    Segment segment, TypeMeta dtype, int64_t begin, int64_t nbytes, bint readonly,
):
    """Return a TensorImpl without sizes over bytes of the segment."""
    cdef Storage storage = new_storage(DL_CPU, 0)
    cdef TensorImpl impl = new_impl(storage, dtype)
    cdef int flags = EXTERNAL
    if readonly or not segment.mapping.writable:
        flags |= READONLY
    install(storage, segment, segment.mapping.data + begin, dtype, nbytes, flags)
    return impl


cdef TensorImpl _from_row(Segment segment, const int64_t* row, TypeMeta dtype):
    cdef int ndim = <int>row[5]
    cdef const int64_t* sizes = row + 6
    cdef const int64_t* strides = sizes + ndim
    cdef int64_t begin = row[1], nbytes = row[2], offset = row[4]
    cdef int64_t numel = checked_numel(sizes, ndim)
    cdef int64_t low = 0, high = -1
    cdef TensorImpl impl
    if not dtype.c_is_pod or dtype.itemsize <= 0 or numel < 0 or begin < 0 or nbytes < 0 \
            or begin > segment.mapping.nbytes - nbytes \
            or begin % min(<int64_t>8, dtype.itemsize) != 0:
        raise _damaged()
    for i in range(ndim):
        if sizes[i] < 0:
            raise _damaged()
    if numel:
        if extent(sizes, strides, ndim, &low, &high) != 0 or offset < 0 \
                or offset > INT64_MAX - max(high, <int64_t>0) - 1 or offset + low < 0 \
                or checked_mul(offset + high + 1, dtype.itemsize) < 0 \
                or (offset + high + 1) * dtype.itemsize > nbytes:
            raise _damaged()
    impl = _impl(segment, dtype, begin, nbytes, row[3] & 1)
    impl.set_strided(sizes, strides, ndim, numel)
    impl.offset = offset
    return impl


def segment_of(TensorImpl impl) -> Segment | None:
    """Return the Segment that the elements of a tensor in host memory lie in; None if in none.

    A tensor without elements lies in the segment that owns its memory.
    """
    cdef char* data
    cdef int64_t low = 0, nbytes
    impl = seen(impl)
    if impl.storage is None or impl.storage.device_type != DL_CPU or not impl.c_dtype.c_is_pod:
        return None
    owner = owner_of(impl.storage)
    if type(owner) is Segment:
        return owner
    if not impl.c_numel or not nbytes_of(impl.storage):
        return None
    impl.storage.check()
    data = impl.data("share")
    nbytes = block(<uintptr_t>data, impl.c_sizes, impl.c_strides(), impl.ndim,
                   impl.c_dtype.itemsize, &low)
    if nbytes < 0:
        return None
    return segment_at(data + low * impl.c_dtype.itemsize, nbytes)


def row_of(Segment segment, TensorImpl impl, types: list[TypeMeta]) -> bytes:
    """Return the row of a tensor that lies in `segment`, as `impls` reads it, as bytes.

    types: the TypeMetas so far, a list that a new one is added to.
    """
    cdef Storage storage
    cdef char* first
    cdef char* begin
    cdef int64_t nbytes, low = 0
    cdef int64_t[6] head
    impl = seen(impl)
    storage = impl.storage
    if impl.c_dtype not in types:
        types.append(impl.c_dtype)
    first = segment.mapping.data
    begin, nbytes = begin_of(storage), nbytes_of(storage)
    head[4] = impl.offset
    if begin < first or begin + nbytes > first + segment.mapping.nbytes:
        # of a storage that reaches farther: the elements themselves
        begin = impl.data("share")
        nbytes = block(<uintptr_t>begin, impl.c_sizes, impl.c_strides(), impl.ndim,
                       impl.c_dtype.itemsize, &low) if impl.c_numel else 0
        begin += low * impl.c_dtype.itemsize
        head[4] = -low
    head[0] = types.index(impl.c_dtype)
    head[1], head[2] = begin - first, nbytes
    head[3] = 1 if flags_of(storage) & READONLY else 0
    head[5] = impl.ndim
    return (PyBytes_FromStringAndSize(<char*>head, sizeof(head))
            + PyBytes_FromStringAndSize(<char*>impl.c_sizes, 16 * impl.ndim))


def in_storage(TensorImpl impl, TensorImpl other) -> TensorImpl:
    """Return a tensor with the sizes of `impl` in the Storage of `other`, which is the same memory.

    Tensors that share a Storage in one process do so in another one.
    """
    cdef TensorImpl found = new_impl(storage_of(other), impl.c_dtype)
    found.set_strided(impl.c_sizes, impl.c_strides(), impl.ndim, impl.c_numel)
    found.offset = impl.offset
    return found
