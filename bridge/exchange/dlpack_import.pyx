# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""From DLTensor to TensorImpl. The producer is not trusted: every field is checked."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy

from bridge.c10.dims cimport Dims, parse_dims
from bridge.c10.copy cimport contiguous_copy, requested_copy, require_copy
from bridge.c10.device cimport host_accessible
from bridge.c10.layout cimport (
    MAX_BYTES,
    block,
    checked_mul,
    checked_numel,
    contiguous_strides,
    is_contiguous,
)
from bridge.c10.storage cimport EXTERNAL, READONLY, Storage, install
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    allocated,
    device_index_of,
    device_type_of,
    new_pair,
)
from bridge.c10.type_meta cimport TypeMeta, from_dlpack_type
from bridge.dlpack.abi cimport DL_COMPLEX, DL_CPU, DL_CUDA, DLDataType, DLTensor
from bridge.dlpack.capsule cimport ManagedTensor

from bridge.c10.device import DeviceType

cdef enum:
    MAX_NDIM = 1024         # no framework supports more


cdef TypeMeta _type_of(DLDataType dtype):
    cdef TypeMeta found = from_dlpack_type(dtype)
    if found is None:
        triple = (dtype.code, dtype.bits, dtype.lanes)
        if dtype.lanes != 1:
            raise BufferError(
                f"The DLPack type {triple} has {dtype.lanes} lanes; elements of one lane are "
                "exchanged. Ask the producer for the lanes as a dimension.")
        raise BufferError(f"The DLPack type (code, bits, lanes) = {triple} is not known.")
    return found


cdef int64_t _alignment(DLDataType dtype) noexcept:
    cdef int64_t nbytes = (dtype.bits * dtype.lanes + 7) // 8
    if dtype.code == DL_COMPLEX:
        nbytes //= 2
    # a power of two; 1 for odd sizes, whose alignment is unknown
    return nbytes if nbytes & (nbytes - 1) == 0 and nbytes <= 16 else 1


cdef TensorImpl adopt(
    DLTensor* tensor, object ctx, int storage_flags, bint padded, object copy,
):
    """Return a TensorImpl over the memory of `tensor`, which `ctx` keeps alive.

    Misaligned and packed elements are copied. Raises BufferError: the description is impossible or
    not supported, or a copy is needed and `copy` is False.
    """
    cdef TensorImpl impl
    cdef Storage storage
    cdef TypeMeta dtype
    cdef int ndim = tensor.ndim
    cdef int i, index = tensor.device.device_id
    cdef int64_t numel, low = 0, nbytes
    cdef uintptr_t first, begin
    if ndim < 0 or ndim > MAX_NDIM:
        raise BufferError(f"The DLPack tensor has {ndim} dimensions, which is not supported.")
    if ndim > 0 and tensor.shape == NULL:
        raise BufferError(f"The DLPack tensor has {ndim} dimensions and no shape (NULL).")
    dtype = _type_of(tensor.dtype)
    if tensor.device.device_id < 0 or tensor.device.device_id > 0x7FFF:
        raise BufferError(f"The DLPack tensor is on device number {tensor.device.device_id}.")
    if tensor.device.device_type < 1 or tensor.device.device_type > 31 \
            or not (_device_types >> tensor.device.device_type) & 1:
        raise BufferError(
            f"The DLPack tensor is on a device of the unknown type {tensor.device.device_type}.")
    numel = checked_numel(tensor.shape, ndim)
    if numel < 0:
        raise BufferError(
            f"The DLPack tensor's shape {[tensor.shape[i] for i in range(ndim)]} is not a shape: "
            "a size is negative, or there are more elements than an int64 counts.")
    if checked_mul(numel, dtype.itemsize) < 0:
        raise BufferError(
            f"The DLPack tensor's {numel} elements of {dtype} are more bytes than an int64 counts.")
    if tensor.device.device_type == DL_CPU:
        index = 0       # JAX counts parts of the CPU, whose memory is the same
    impl = new_pair(tensor.device.device_type, index, dtype)
    storage = impl.storage
    impl.set_ndim(ndim)
    if ndim:                    # shape may be NULL without dimensions, which memcpy does not allow
        memcpy(impl.c_sizes, tensor.shape, ndim * sizeof(int64_t))
    if tensor.strides == NULL or ndim == 0:
        contiguous_strides(impl.c_sizes, impl.c_strides(), ndim)
    else:
        memcpy(impl.c_strides(), tensor.strides, ndim * sizeof(int64_t))
    impl.c_numel = numel
    if is_contiguous(impl.c_sizes, impl.c_strides(), ndim):
        impl.flags |= CONTIGUOUS
    first = <uintptr_t>tensor.data
    if numel:
        if first == 0:
            raise BufferError(
                f"The DLPack tensor has {numel} elements and no memory (NULL): it is "
                "uninitialised, or its storage was freed.")
        if tensor.byte_offset > <uint64_t>MAX_BYTES or first + tensor.byte_offset < first:
            raise BufferError(
                f"The DLPack tensor's byte_offset {tensor.byte_offset} is outside of the address "
                "space.")
        first += tensor.byte_offset
        if dtype.c_dlpack.bits < 8 and dtype.c_dlpack.lanes == 1 and not padded:
            return _unpacked(impl, first, ctx, copy)
        nbytes = block(first, impl.c_sizes, impl.c_strides(), ndim, dtype.itemsize, &low)
        if nbytes < 0:
            raise BufferError(
                f"The DLPack tensor at {first:#x} with sizes {impl.sizes().vec()} and strides "
                f"{impl.strides().vec()} reaches out of the address space.")
        begin = first - <uintptr_t>(-low * dtype.itemsize)
        if first % <uintptr_t>_alignment(tensor.dtype) != 0:
            return _realigned(impl, begin, low, nbytes, ctx, storage_flags, copy)
        impl.offset = -low
        install(storage, ctx, <char*>begin, dtype, nbytes, storage_flags | EXTERNAL)
    else:
        install(storage, ctx, <char*>first, dtype, 0, storage_flags | EXTERNAL)
    if copy is True:
        return requested_copy(impl, "from_dlpack")
    return impl


cdef TensorImpl _realigned(
    TensorImpl impl, uintptr_t begin, int64_t low, int64_t nbytes, object ctx, int flags,
    object copy,
):
    if not host_accessible(device_type_of(impl)):
        raise BufferError(
            f"The data at {begin:#x} on {impl.device()} is not aligned for {impl.c_dtype}.")
    require_copy(copy, impl.c_numel * impl.c_dtype.itemsize,
                 f"its elements, from {begin:#x} on, are not aligned for {impl.c_dtype}")
    impl.offset = -low
    install(impl.storage, ctx, <char*>begin, impl.c_dtype, nbytes, flags | EXTERNAL)
    # copies by bytes, so alignment does not matter to it
    return contiguous_copy(impl, "from_dlpack")


cdef TensorImpl _unpacked(TensorImpl impl, uintptr_t first, object ctx, object copy):
    """Return a copy of packed elements of fewer than eight bits, a byte for each."""
    cdef TensorImpl out
    cdef TypeMeta dtype = impl.c_dtype
    cdef int bits = dtype.c_dlpack.bits
    cdef int64_t i, at, numel = impl.c_numel
    cdef const uint8_t* source = <const uint8_t*>first
    cdef uint8_t* to
    cdef unsigned int value
    cdef bint is_signed = dtype.c_dlpack.code == 0
    if numel > INT64_MAX // 8 or numel * bits % 8 != 0:
        raise BufferError(
            f"{numel} packed elements of {dtype} do not fill whole bytes.")
    if not impl.flags & CONTIGUOUS or not host_accessible(device_type_of(impl)):
        raise BufferError(
            f"Packed elements of {dtype} are exchanged contiguous and in host memory only.")
    require_copy(copy, numel, f"its elements of {dtype} are packed, and here each takes a byte")
    out = allocated(impl.c_sizes, impl.ndim, dtype, device_type_of(impl),
                    device_index_of(impl), "from_dlpack")
    to = <uint8_t*>out.data("from_dlpack")
    for i in range(numel):
        at = i * bits
        value = source[at >> 3] >> (at & 7)
        if (at & 7) + bits > 8:
            value |= <unsigned int>source[(at >> 3) + 1] << (8 - (at & 7))
        value &= (1 << bits) - 1
        if is_signed and value >> (bits - 1):
            value |= 0xFF << bits
        to[i] = <uint8_t>(value & 0xFF)
    return out


cdef TensorImpl adopt_managed(ManagedTensor managed, int storage_flags, object copy):
    """Return a TensorImpl over a DLPack tensor that the bridge owns."""
    if managed.readonly():
        storage_flags |= READONLY
    return adopt(managed.tensor(), managed, storage_flags, managed.padded(), copy)


def adopt_cuda_memory(
    object owner,
    uintptr_t address,
    object sizes: Sequence[int],
    object strides: Sequence[int] | None,
    TypeMeta dtype,
    int index,
    bint readonly,
) -> TensorImpl:
    """Return a TensorImpl over memory on CUDA device `index`, which `owner` keeps alive.

    `strides`: in elements; None: row-major. Raises BufferError as `adopt`.
    """
    cdef DLTensor tensor
    cdef Dims shape = parse_dims(sizes, "from_dlpack")
    cdef Dims steps = None
    tensor.data = <void*>address
    tensor.device.device_type = DL_CUDA
    tensor.device.device_id = index
    tensor.ndim = shape.n
    tensor.dtype = dtype.c_dlpack
    tensor.shape = shape.data
    tensor.strides = NULL
    tensor.byte_offset = 0
    if strides is not None:
        steps = parse_dims(strides, "from_dlpack")
        tensor.strides = steps.data
    return adopt(&tensor, owner, READONLY if readonly else 0, True, None)


# a bit for each device type of DLPack
cdef unsigned int _device_types = sum(1 << int(kind) for kind in DeviceType)
