# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Which memory an at.Tensor looks at, and how: resize_, set_, and views as another type."""

from libc.stdint cimport INT64_MAX, int64_t

from bridge.at.data cimport require_pod
from bridge.c10.array_ref cimport Dims, parse_dims, to_int64
from bridge.c10.copy cimport copy_elements
from bridge.c10.layout cimport checked_mul, contiguous_strides
from bridge.c10.storage cimport EXTERNAL, READONLY, Storage, install, new_storage
from bridge.c10.tensor_impl cimport LENT, TensorImpl, allocated, require_numel
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.c10 cimport views
from bridge.exchange.import_tensor cimport import_tensor
from bridge.wrapper cimport Wrapper

from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.c10.tensor_impl import over_storage


cdef TensorImpl as_other_type(TensorImpl impl, object spec):
    """The same bytes as another element type, or None if `spec` names no type."""
    cdef TensorImpl out
    cdef TypeMeta dtype
    try:
        dtype = as_type(spec)
    except TypeError:
        return None
    impl.data("Tensor.view")
    require_pod(impl, "Tensor.view")
    if not dtype.c_is_pod:
        raise EnforceNotMet(
            f"Plain memory is not viewed as {dtype}.", "Tensor.view", condition="T.is_pod")
    out = views.alias(impl, "Tensor.view")
    out.c_dtype = dtype
    if dtype.itemsize != impl.c_dtype.itemsize:
        _rescale(out, impl)
    return out


cdef int _rescale(TensorImpl out, TensorImpl impl) except -1:
    """Count sizes, strides and offset of `out`, which are those of `impl`, in its own elements."""
    cdef int64_t size = out.c_dtype.itemsize, old = impl.c_dtype.itemsize, ratio, i
    cdef int last = impl.ndim - 1
    if impl.ndim == 0 or (impl.c_strides()[last] != 1 and impl.c_sizes[last] != 1):
        raise EnforceNotMet(
            f"{impl.c_dtype} is viewed as {out.c_dtype}, of another size, along a contiguous last "
            "dimension only.", "Tensor.view", condition="stride(-1) == 1")
    if size < old:
        ratio = old // size
        if checked_mul(impl.c_numel, ratio) < 0:
            raise EnforceValueError("That many elements do not fit an int64.", "Tensor.view")
        for i in range(last):
            out.c_strides()[i] *= ratio
        out.c_sizes[last] *= ratio
        out.offset *= ratio
    else:
        ratio = size // old
        uneven = impl.c_sizes[last] % ratio != 0 or impl.offset % ratio != 0
        for i in range(last):
            if impl.c_strides()[i] % ratio != 0 and impl.c_sizes[i] > 1:
                uneven = True
        if uneven:
            raise EnforceNotMet(
                f"Sizes, strides and offset are not multiples of {ratio}, the elements of "
                f"{impl.c_dtype} in one of {out.c_dtype}.", "Tensor.view")
        for i in range(last):
            out.c_strides()[i] //= ratio
        out.c_sizes[last] //= ratio
        out.offset //= ratio
    out.c_strides()[last] = 1
    out.finish()
    return 0


cdef int resize(TensorImpl impl, Dims dims) except -1:
    """See at.Tensor.resize_."""
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
            f"{numel} elements of {impl.c_dtype} are more bytes than an int64 counts.",
            "Tensor.resize_")
    if needed > storage.c_nbytes:
        if storage.flags & EXTERNAL:
            raise EnforceNotMet(
                f"The memory came from outside and has {storage.c_nbytes} bytes; {needed} would "
                "be needed. Use clone() first.",
                "Tensor.resize_", condition="nbytes() <= storage().nbytes()")
        bigger = _grown(storage, needed)
        install(storage, bigger.storage.ctx, bigger.storage.data, impl.c_dtype, needed, 0)
    impl.set_contiguous(dims.data, dims.n, numel)
    return 0


cdef TensorImpl _grown(Storage storage, int64_t nbytes):
    """A new buffer of `nbytes`, as a tensor of them, that begins with the bytes of `storage`."""
    cdef int64_t old = storage.c_nbytes
    cdef TypeMeta byte = as_type("uint8")
    cdef TensorImpl out = allocated(
        &nbytes, 1, byte, storage.device_type, storage.device_index, "Tensor.resize_")
    if old:
        copy_elements(views.slice_dim(out, 0, 0, old, 1, "Tensor.resize_"),
                      over_storage(storage, byte, old), "Tensor.resize_")
    return out


cdef int look_at(
    TensorImpl impl, object source, object storage_offset, object size, object stride,
) except -1:
    """See at.Tensor.set_."""
    cdef TensorImpl src
    cdef Dims sizes
    cdef int64_t offset = to_int64(storage_offset, "Tensor.set_")
    cdef int64_t none = 0
    impl.require_defined("Tensor.set_")
    require_pod(impl, "Tensor.set_")
    if size is None and (offset != 0 or stride is not None):
        raise EnforceTypeError(
            "storage_offset and stride are given together with a size.",
            "Tensor.set_", condition="size is not None")
    if source is None:
        impl.set_contiguous(&none, 1, 0)
        impl.offset = 0
        impl.set_storage(new_storage(impl.storage.device_type, impl.storage.device_index))
        return 0
    src = _looked_at(source, impl.c_dtype)
    if size is not None:
        sizes = parse_dims(size, "Tensor.set_")
        src = _strided(src, sizes, offset, stride)
    impl.set_strided(src.c_sizes, src.c_strides(), src.ndim, src.c_numel)
    impl.offset = src.offset
    impl.set_storage(src.storage)
    if not src.flags & LENT:
        impl.flags &= ~LENT
        impl.origin = src.origin
    return 0


cdef TensorImpl _looked_at(object source, TypeMeta dtype):
    """The memory of a tensor of `dtype`, or all that of a Storage."""
    cdef TensorImpl src
    cdef Storage storage
    if isinstance(source, Storage):
        storage = <Storage>source
        if storage.c_dtype and not storage.c_dtype.c_is_pod:
            raise EnforceNotMet(
                f"A Storage of {storage.c_dtype} is no plain memory.", "Tensor.set_")
        return over_storage(storage, dtype, storage.c_nbytes // dtype.itemsize)
    src = (<Wrapper>source).impl if isinstance(source, Wrapper) else import_tensor(source)
    src.require_defined("Tensor.set_")
    if src.c_dtype is not dtype:
        raise EnforceTypeError(
            f"The source is of {src.c_dtype} and the tensor of {dtype}.", "Tensor.set_",
            condition="source.dtype() == dtype()")
    src.data("Tensor.set_")
    return src


cdef TensorImpl _strided(TensorImpl src, Dims sizes, int64_t offset, object stride):
    """A view of the storage of `src`; row-major where `stride` is None."""
    cdef Dims strides
    if stride is None:
        strides = parse_dims((0,) * sizes.n, "Tensor.set_")
        contiguous_strides(sizes.data, strides.data, sizes.n)
    else:
        strides = parse_dims(stride, "Tensor.set_")
    if strides.n != sizes.n:
        raise EnforceValueError(
            f"There are {sizes.n} sizes and {strides.n} strides.",
            "Tensor.set_", condition="len(size) == len(stride)")
    return views.as_strided(src, sizes.data, strides.data, sizes.n, offset, "Tensor.set_")


def mark_readonly(TensorImpl impl):
    """Have the memory of `impl` read as read-only by all that share its Storage."""
    impl.storage.flags |= READONLY


def mark_owned(TensorImpl impl):
    """Say that nobody but the bridge has the memory of `impl`, an operation's new result."""
    impl.storage.flags &= ~EXTERNAL


def take_metadata(TensorImpl impl, TensorImpl view):
    """Have `impl` look at its Storage as `view` does."""
    impl.set_strided(view.c_sizes, view.c_strides(), view.ndim, view.c_numel)
    impl.offset = view.offset
