# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""The storage of an at.Tensor: as_strided, set_, resize_, deepcopy.

Offsets count from the begin of torch's storage where the memory is a part of one (`Storage.lead`).
"""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t, uintptr_t

from bridge.at.conversion cimport require_pod
from bridge.c10.array_ref cimport to_int64
from bridge.c10.dims cimport Dims, parse_dims, require_numel
from bridge.c10.copy cimport contiguous_copy, copy_elements
from bridge.c10.device cimport host_accessible
from bridge.c10.layout cimport checked_mul, checked_numel, contiguous_strides, extent
from bridge.c10.storage cimport (
    EXTERNAL,
    LENT,
    READONLY,
    Storage,
    begin_of,
    flags_of,
    install,
    nbytes_of,
    new_storage,
    set_flags,
    set_storage_type,
    storage_type,
)
from bridge.c10.tensor_impl cimport (
    OWN_ORIGIN,
    TensorImpl,
    allocated,
    dtype_of,
    former,
    offset_of,
    seen,
    set_impl_flags,
    set_offset,
    storage_of,
)
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.c10 cimport views
from bridge.exchange.import_tensor cimport import_tensor
from bridge.exchange.torch_storage cimport torch_storage
from bridge.wrapper cimport Wrapper

from copy import deepcopy

from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.c10.tensor_impl import over_storage


@cython.critical_section
cdef int resize(TensorImpl impl, Dims dims) except -1:
    """Set the sizes; see at.Tensor.resize_."""
    cdef Storage storage
    cdef TensorImpl bigger
    cdef int64_t numel, needed
    impl.require_defined("Tensor.resize_")
    require_pod(impl, "Tensor.resize_")
    numel = require_numel(dims.data, dims.n, "Tensor.resize_")
    storage = impl.storage
    needed = -1 if numel > INT64_MAX - impl.offset else \
        checked_mul(impl.offset + numel, impl.c_dtype.itemsize)
    if needed < 0:
        raise EnforceValueError(
            f"The size in bytes of {numel} elements of {impl.c_dtype} does not fit an int64.",
            "Tensor.resize_")
    _former = former(impl)      # released on return
    if needed > nbytes_of(storage):
        if flags_of(storage) & EXTERNAL:
            raise EnforceNotMet(
                f"Memory from outside the bridge cannot grow from {nbytes_of(storage)} bytes to "
                f"{needed}. Use clone() first.",
                "Tensor.resize_", condition="nbytes() <= storage().nbytes()")
        bigger = _grown(storage, needed)
        install(storage, bigger.storage.ctx, bigger.storage.data, impl.c_dtype, needed, 0)
    impl.set_contiguous(dims.data, dims.n, numel)
    return 0


cdef TensorImpl _grown(Storage storage, int64_t nbytes):
    """Return a uint8 tensor of `nbytes` in new memory, which starts with the bytes of `storage`."""
    cdef int64_t old = nbytes_of(storage)
    cdef TypeMeta byte = as_type("uint8")
    cdef TensorImpl out = allocated(
        &nbytes, 1, byte, storage.device_type, storage.device_index, "Tensor.resize_")
    if old:
        copy_elements(views.slice_dim(out, 0, 0, old, 1, "Tensor.resize_"),
                      over_storage(storage, byte, old), "Tensor.resize_")
    return out


@cython.critical_section
cdef int set_source(
    TensorImpl impl, object source, object storage_offset, object size, object stride,
) except -1:
    """Share the memory of `source`; see at.Tensor.set_."""
    cdef TensorImpl src
    cdef Storage empty
    cdef Dims sizes
    cdef int64_t offset = to_int64(storage_offset, "Tensor.set_")
    cdef int64_t none = 0
    impl.require_defined("Tensor.set_")
    require_pod(impl, "Tensor.set_")
    if size is None and (offset != 0 or stride is not None):
        raise EnforceTypeError(
            "storage_offset and stride require a size.",
            "Tensor.set_", condition="size is not None")
    if source is None:
        empty = new_storage(impl.storage.device_type, impl.storage.device_index)
        _former = former(impl)      # released on return
        impl.set_contiguous(&none, 1, 0)
        set_offset(impl, 0)
        impl.set_storage(empty)
        return 0
    src = _source(source, impl.c_dtype)
    if (src.storage.device_type != impl.storage.device_type
            or src.storage.device_index != impl.storage.device_index) and not (
                host_accessible(src.storage.device_type)
                and host_accessible(impl.storage.device_type)):
        _refuse_device(src.storage, impl.storage)
    if size is not None:
        sizes = parse_dims(size, "Tensor.set_")
        src = _strided(src, sizes, offset, stride)
    _former = former(impl)
    impl.set_strided(src.c_sizes, src.c_strides(), src.ndim, src.c_numel)
    set_offset(impl, src.offset)
    impl.set_storage(src.storage)
    if not src.flags & OWN_ORIGIN:
        set_impl_flags(impl, impl.flags & ~OWN_ORIGIN)
        impl.origin = src.origin
    return 0


cdef int _refuse_device(Storage source, Storage storage) except -1:
    raise EnforceNotMet(
        f"The source is on {source.device()}, the tensor on {storage.device()}. Copy it there "
        f"first, as with source.to({str(storage.device())!r}).", "Tensor.set_",
        condition="source.device() == device()")


cdef int64_t storage_offset_of(TensorImpl impl) except -1:
    """Return the position of the first element in the storage, in elements."""
    cdef Storage storage = storage_of(impl)
    return offset_of(impl) + storage.lead() // (<TypeMeta>dtype_of(impl)).itemsize


cdef TensorImpl restrided(
    TensorImpl impl, Dims sizes, Dims strides, object storage_offset, str caller,
):
    """Return a view of the storage of `impl`; see at.Tensor.as_strided."""
    cdef TensorImpl whole
    cdef int64_t before, offset
    impl = seen(impl)
    before = impl.storage.lead() // impl.c_dtype.itemsize
    offset = impl.offset + before if storage_offset is None else to_int64(storage_offset, caller)
    if flags_of(impl.storage) & LENT and offset >= 0 \
            and not _lies_inside(impl, sizes, strides, offset - before):
        whole = _whole_storage(impl.storage, impl.c_dtype)
        if whole is not None:
            impl, before = whole, 0
    if offset >= 0:
        offset -= before
    return views.as_strided(impl, sizes.data, strides.data, sizes.n, offset, caller)


cdef bint _lies_inside(TensorImpl impl, Dims sizes, Dims strides, int64_t offset) except -1:
    """Return whether such a view lies in the part of torch's storage that `impl.storage` has."""
    cdef int64_t low = 0, high = 0, end
    if checked_numel(sizes.data, sizes.n) <= 0:
        return True         # no elements, or sizes that `as_strided` refuses
    if extent(sizes.data, strides.data, sizes.n, &low, &high) < 0 \
            or high >= INT64_MAX - max(offset, 0):
        return True         # likewise
    end = checked_mul(offset + high + 1, impl.c_dtype.itemsize) if offset + high >= 0 else -1
    return offset + low >= 0 and 0 <= end <= nbytes_of(impl.storage)


cdef TensorImpl _whole_storage(Storage storage, TypeMeta dtype):
    """Return all of the torch storage that a LENT Storage is a part of, as a 1-d TensorImpl.

    None: the Storage has all of it, or no framework's memory.
    """
    cdef TensorImpl whole
    if not flags_of(storage) & LENT or dtype.torch is None:
        return None
    untyped = torch_storage(storage)
    if storage.lead() == 0 and <int64_t>len(untyped) == nbytes_of(storage):
        return None
    whole = import_tensor(_flat(untyped, dtype))
    if flags_of(storage) & READONLY:
        mark_readonly(whole)
    return whole


cdef object _flat(object untyped, TypeMeta dtype):
    """Return a 1-d torch.Tensor of all of a torch.UntypedStorage."""
    import torch
    return torch.empty(0, dtype=dtype.torch, device=untyped.device).set_(untyped)


cdef TensorImpl deep_copied(TensorImpl impl, object memo):
    """Return a copy, for ``copy.deepcopy``: all of the storage, once for all that share it.

    torch's own deepcopy of tensors of the same torch storage shares that copy, too.
    """
    cdef TensorImpl whole
    cdef Storage storage
    cdef int64_t itemsize, before
    cdef str caller = "Tensor.__deepcopy__"
    impl = seen(impl)
    impl.data(caller)
    storage = impl.storage
    if impl.c_numel == 0 or not impl.c_dtype.c_is_pod:
        return contiguous_copy(impl, caller)
    itemsize, before = impl.c_dtype.itemsize, storage.lead()
    if before % itemsize:
        return contiguous_copy(impl, caller)
    copied = memo.get(id(storage))
    if copied is None:
        copied = memo[id(storage)] = _copy_of(storage, impl.c_dtype, memo)
    whole = over_storage(copied, impl.c_dtype, 0)
    return views.as_strided(whole, impl.c_sizes, impl.c_strides(), impl.ndim,
                            impl.offset + before // itemsize, caller)


cdef Storage _copy_of(Storage storage, TypeMeta dtype, object memo):
    """Return a new Storage with the bytes of `storage`, and of all of torch's that it lies in."""
    cdef TensorImpl whole
    cdef TypeMeta byte = as_type("uint8")
    untyped = torch_storage(storage)
    if untyped is None:
        whole = contiguous_copy(
            over_storage(storage, byte, nbytes_of(storage)), "Tensor.__deepcopy__")
        set_storage_type(whole.storage, <TypeMeta>storage_type(storage))
        return whole.storage
    untyped = deepcopy(untyped, memo)
    if dtype.torch is None or len(untyped) % dtype.itemsize:
        dtype = byte
    whole = import_tensor(_flat(untyped, dtype))
    if not flags_of(storage) & LENT:
        mark_owned(whole)
    return whole.storage


cdef TensorImpl _source(object source, TypeMeta dtype):
    """Return a tensor of `dtype`, or all of a Storage as a 1-d tensor of `dtype`; shared."""
    cdef TensorImpl src
    cdef Storage storage
    if isinstance(source, Storage):
        storage = <Storage>source
        kept = storage.dtype()
        if kept and not kept.is_pod:
            raise EnforceNotMet(f"A Storage of {kept} is not plain memory.", "Tensor.set_")
        src = _whole_storage(storage, dtype)
        return over_storage(storage, dtype, nbytes_of(storage) // dtype.itemsize) \
            if src is None else src
    src = seen((<Wrapper>source).impl if isinstance(source, Wrapper) else import_tensor(source))
    src.require_defined("Tensor.set_")
    if src.c_dtype is not dtype:
        raise EnforceTypeError(
            f"The source has elements of {src.c_dtype}, the tensor of {dtype}.", "Tensor.set_",
            condition="source.dtype() == dtype()")
    src.data("Tensor.set_")
    return src


cdef TensorImpl _strided(TensorImpl src, Dims sizes, int64_t offset, object stride):
    """Return a view of the storage of `src`; row-major if `stride` is None."""
    cdef Dims strides
    require_numel(sizes.data, sizes.n, "Tensor.set_")
    if stride is None:
        strides = parse_dims((0,) * sizes.n, "Tensor.set_")
        contiguous_strides(sizes.data, strides.data, sizes.n)
    else:
        strides = parse_dims(stride, "Tensor.set_")
    if strides.n != sizes.n:
        raise EnforceValueError(
            f"There are {sizes.n} sizes, but {strides.n} strides.",
            "Tensor.set_", condition="len(size) == len(stride)")
    return restrided(src, sizes, strides, offset, "Tensor.set_")


def mark_readonly(TensorImpl impl) -> None:
    """Make the memory of `impl` read-only for all tensors that share its Storage."""
    cdef Storage storage = storage_of(impl)
    with cython.critical_section(storage):
        set_flags(storage, storage.flags | READONLY)


def mark_owned(TensorImpl impl) -> None:
    """Mark the memory of `impl`, the new result of an operation, as owned by the bridge alone."""
    cdef Storage storage = storage_of(impl)
    with cython.critical_section(storage):
        set_flags(storage, storage.flags & ~EXTERNAL)


cpdef TensorImpl import_result(object tensor: torch.Tensor):
    """Return the TensorImpl of a new result of torch.

    A tensor that was made in inference mode refuses to be written after it. So that one does not go
    out again: what `to_torch` makes of its memory later is a tensor like all others.
    """
    cdef TensorImpl impl = import_tensor(tensor)
    if tensor.is_inference():
        impl.origin = None
    return impl


@cython.critical_section
def set_metadata(TensorImpl impl, TensorImpl view) -> None:
    """Set the sizes, strides and offset of `impl` to those of `view`, of the same Storage."""
    _former = former(impl)      # released on return
    impl.set_strided(view.c_sizes, view.c_strides(), view.ndim, view.c_numel)
    set_offset(impl, view.offset)


cdef bint overlap(Storage a, Storage b) noexcept:
    """Return whether two Storages of the host have a byte in common."""
    cdef uintptr_t first = <uintptr_t>begin_of(a), second = <uintptr_t>begin_of(b)
    return first < second + <uintptr_t>nbytes_of(b) and second < first + <uintptr_t>nbytes_of(a) \
        and host_accessible(a.device_type) and host_accessible(b.device_type)


def has_memory_of(TensorImpl impl, list others: list[TensorImpl]) -> bool:
    """Return whether the elements lie in memory of the Storage of one of `others`."""
    cdef Storage storage = storage_of(impl)
    for one in others:
        if overlap(storage, storage_of(<TensorImpl>one)):
            return True
    return False
