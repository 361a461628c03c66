# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Changes of the storage and metadata of an at.Tensor in place: resize_ and set_."""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t

from bridge.at.conversion cimport require_pod
from bridge.c10.dims cimport Dims, parse_dims, require_numel
from bridge.c10.integers cimport to_int64
from bridge.c10.copy cimport copy_elements
from bridge.c10.device cimport host_accessible
from bridge.c10.layout cimport checked_mul, contiguous_strides
from bridge.c10.storage cimport (
    EXTERNAL,
    READONLY,
    Storage,
    flags_of,
    install,
    nbytes_of,
    new_storage,
    set_flags,
)
from bridge.c10.tensor_impl cimport (
    OWN_ORIGIN,
    TensorImpl,
    allocated,
    former,
    seen,
    set_impl_flags,
    set_offset,
    storage_of,
)
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.c10 cimport views
from bridge.exchange.import_tensor cimport import_tensor
from bridge.wrapper cimport Wrapper

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


cdef TensorImpl _source(object source, TypeMeta dtype):
    """Return a tensor of `dtype`, or all of a Storage as a 1-d tensor of `dtype`; shared."""
    cdef TensorImpl src
    cdef Storage storage
    if isinstance(source, Storage):
        storage = <Storage>source
        kept = storage.dtype()
        if kept and not kept.is_pod:
            raise EnforceNotMet(f"A Storage of {kept} is not plain memory.", "Tensor.set_")
        return over_storage(storage, dtype, nbytes_of(storage) // dtype.itemsize)
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
    return views.as_strided(src, sizes.data, strides.data, sizes.n, offset, "Tensor.set_")


def mark_readonly(TensorImpl impl):
    """Make the memory of `impl` read-only for all tensors that share its Storage."""
    cdef Storage storage = storage_of(impl)
    with cython.critical_section(storage):
        set_flags(storage, storage.flags | READONLY)


def mark_owned(TensorImpl impl):
    """Mark the memory of `impl`, the new result of an operation, as owned by the bridge alone."""
    cdef Storage storage = storage_of(impl)
    with cython.critical_section(storage):
        set_flags(storage, storage.flags & ~EXTERNAL)


cpdef TensorImpl import_result(object tensor):
    """Return the TensorImpl of a new result of torch.

    A tensor that was made in inference mode refuses to be written after it. So that one does not go
    out again: what `to_torch` makes of its memory later is a tensor like all others.
    """
    cdef TensorImpl impl = import_tensor(tensor)
    if tensor.is_inference():
        impl.origin = None
    return impl


@cython.critical_section
def set_metadata(TensorImpl impl, TensorImpl view):
    """Set the sizes, strides and offset of `impl` to those of `view`, of the same Storage."""
    _former = former(impl)      # released on return
    impl.set_strided(view.c_sizes, view.c_strides(), view.ndim, view.c_numel)
    set_offset(impl, view.offset)
