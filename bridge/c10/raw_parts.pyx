# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""A TensorImpl from its raw parts (bytes or elements, sizes, type), and the parts of one."""

from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_ND,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
)
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from libc.stdint cimport int64_t, uintptr_t

from bridge.c10.dims cimport Dims, parse_dims, require_numel
from bridge.c10.copy cimport contiguous_copy
from bridge.c10.device cimport Device
from bridge.c10.layout cimport checked_mul
from bridge.c10.retained cimport retained_owner
from bridge.c10.storage cimport (
    EXTERNAL,
    READONLY,
    Elements,
    Storage,
    elements_of,
    install,
    new_storage,
    owner_of,
)
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, new_impl, seen, storage_flags
from bridge.c10.type_meta cimport TypeMeta, undefined_type
from bridge.dlpack.abi cimport DL_CPU

from bridge.c10.errors import EnforceNotMet


cdef class ByteView:
    """The bytes of a contiguous tensor in host memory, through the buffer protocol."""

    cdef object ctx
    cdef char* data
    cdef Py_ssize_t nbytes
    cdef bint readonly

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if flags & PyBUF_WRITABLE and self.readonly:
            raise BufferError("The bytes are read-only.")
        buffer.buf = self.data
        if self.data == NULL:
            buffer.buf = &self.nbytes       # any address but NULL; no byte of it is read
        buffer.obj = self
        buffer.len = self.nbytes
        buffer.itemsize = 1
        buffer.readonly = self.readonly
        buffer.ndim = 1
        buffer.format = NULL
        if flags & PyBUF_FORMAT:
            buffer.format = b"B"
        buffer.shape = &self.nbytes if flags & PyBUF_ND else NULL
        buffer.strides = &buffer.itemsize if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
        buffer.suboffsets = NULL
        buffer.internal = NULL


def byte_view(TensorImpl impl) -> ByteView:
    """Return the bytes of `impl`, which is in host memory; shared if it is contiguous, else copied.

    Raises EnforceNotMet: no memory, or not POD.
    """
    cdef ByteView view = ByteView.__new__(ByteView)
    impl = seen(impl)
    if not impl.flags & CONTIGUOUS:
        impl = contiguous_copy(impl, "byte_view")
    view.ctx = retained_owner(impl, &view.data, "byte_view")
    view.nbytes = impl.c_numel * impl.c_dtype.itemsize
    view.readonly = storage_flags(impl) & READONLY
    return view


def from_buffer(
    buffer: BufferLike, sizes: Dims, TypeMeta dtype, bint misaligned=False
) -> TensorImpl:
    """Return a TensorImpl over the bytes of `buffer`, read-only if the buffer is.

    Copied only if the buffer is not aligned for the type and `misaligned` is False.

    Raises EnforceNotMet: a non-POD type, invalid sizes, or a buffer of another number of bytes.
    """
    cdef Py_buffer* given
    cdef Dims dims = parse_dims(sizes, "from_buffer")
    cdef int64_t numel = require_numel(dims.data, dims.n, "from_buffer")
    cdef int64_t nbytes
    cdef Storage storage
    cdef TensorImpl impl
    if not dtype.c_is_pod:
        raise EnforceNotMet(
            f"A buffer holds POD elements, not {dtype}.", "from_buffer", condition="dtype.is_pod")
    nbytes = checked_mul(numel, dtype.itemsize)
    owner = PyMemoryView_FromObject(buffer)
    if not owner.c_contiguous:
        raise BufferError(f"The buffer of {type(buffer).__name__} is not contiguous.")
    given = PyMemoryView_GET_BUFFER(owner)
    if nbytes < 0 or given.len != nbytes:
        raise EnforceNotMet(
            f"The buffer has {given.len} bytes, and {numel} elements of {dtype} take "
            f"{nbytes}.", "from_buffer", condition="len(buffer) == nbytes")
    storage = new_storage(DL_CPU, 0)
    impl = new_impl(storage, dtype)
    impl.set_contiguous(dims.data, dims.n, numel)
    install(storage, owner, <char*>given.buf, dtype, nbytes,
            EXTERNAL | READONLY if given.readonly else EXTERNAL)
    if not misaligned and numel \
            and <uintptr_t>given.buf % <uintptr_t>min(dtype.itemsize, 8) != 0:
        return contiguous_copy(impl, "from_buffer")
    return impl


def from_items(sizes: Dims, TypeMeta dtype, items: Sequence[Any]) -> TensorImpl:
    """Return a TensorImpl of a non-POD type with these elements, which are not copied.

    Raises EnforceNotMet: the type is POD, or another number of elements than the sizes need.
    """
    cdef Dims dims = parse_dims(sizes, "from_items")
    cdef int64_t numel = require_numel(dims.data, dims.n, "from_items")
    cdef list values = list(items)
    cdef Elements elements
    cdef TensorImpl impl
    if dtype.c_is_pod or dtype is undefined_type:
        raise EnforceNotMet(
            f"Elements of {dtype} are not Python objects.", "from_items", condition="!dtype.is_pod")
    if len(values) != numel:
        raise EnforceNotMet(
            f"There are {len(values)} elements for {numel} places.", "from_items",
            condition="len(items) == numel()")
    impl = new_impl(new_storage(DL_CPU, 0), dtype)
    impl.set_contiguous(dims.data, dims.n, numel)
    elements = elements_of(dtype, values)
    install(impl.storage, elements, <char*><void*>elements if numel else NULL, dtype,
            numel * dtype.itemsize, 0)
    return impl


def sized(sizes: Dims, TypeMeta dtype: TypeMeta | None, Device device) -> TensorImpl:
    """Return a TensorImpl with sizes and without memory. Raises EnforceNotMet: invalid sizes."""
    cdef Dims dims = parse_dims(sizes, "sized")
    cdef TensorImpl impl = new_impl(
        new_storage(device.c_type, device.c_index), dtype if dtype else undefined_type)
    impl.set_contiguous(dims.data, dims.n, require_numel(dims.data, dims.n, "sized"))
    return impl


def items_of(TensorImpl impl) -> list[Any]:
    """Return the elements of a non-POD tensor in a new list; the elements are not copied."""
    impl = seen(impl)
    impl.data("items_of")
    if impl.c_numel == 0:
        return []
    return (<Elements?>owner_of(impl.storage)).items[impl.offset:impl.offset + impl.c_numel]
