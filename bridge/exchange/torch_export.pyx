# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""From TensorImpl to torch.Tensor.

An imported tensor goes out as the object that came in, as long as it has the sizes, the type and
the memory that the bridge knows of. Everything else goes out as a view of the torch storage of its
Storage (see `torch_views`).
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from bridge.c10.dims cimport Dims, new_dims
from bridge.c10.copy cimport reported_copy, requested_copy
from bridge.c10.storage cimport EXTERNAL, READONLY
from bridge.c10.tensor_impl cimport (
    OWN_ORIGIN,
    TensorImpl,
    device_type_of,
    dtype_of,
    has_origin,
    impl_flags,
    origin_of,
    seen,
    set_impl_flags,
    storage_flags,
    storage_of,
)
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.c10.views cimport alias
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.torch_api cimport is_tensor, load_torch, torch_type
from bridge.exchange.torch_storage cimport torch_owner
from bridge.exchange.torch_views cimport (
    is_same_by_torch,
    is_same_tensor,
    outgoing_alias,
    taken_by_torch,
    torch_view,
)

from bridge.c10.copy import register_device_copy
from bridge.c10.errors import EnforceBufferError

cpdef object export_torch(
    TensorImpl impl, object copy: bool | None = None, bint writable=False
):  # pyi: torch.Tensor
    """Return a torch.Tensor of the same memory: the one that came in, or a new one.

    Memory that torch cannot express, read-only or with negative strides, is copied unless
    `copy` is False (BufferError); `writable` shares read-only memory all the same.
    """
    if copy is not True and has_origin(impl):
        origin = origin_of(impl)
        if impl_flags(impl) & OWN_ORIGIN:       # (read last, since `_remember` writes it first)
            if origin is not None and not storage_flags(impl) & READONLY \
                    and is_same_tensor(impl, origin):
                storage_of(impl).check()
                return outgoing_alias(impl, origin)
        elif is_tensor(origin):
            if reads_unchanged(impl, <PyObject*>origin):
                return origin
            if is_same_by_torch(impl, origin):
                storage_of(impl).check()    # its storage may have been resized
                return origin
    return _new_tensor(impl, copy, writable, False)


cdef object export_torch_once(TensorImpl impl, object copy, bint writable):
    """Do as `export_torch`, for memory that was just imported and whose Storage goes after this."""
    return _new_tensor(impl, copy, writable, False, True)


cpdef object torch_operand(TensorImpl impl):  # pyi: torch.Tensor
    """Return a torch.Tensor for an operation on the memory of `impl`, which may be read-only.

    The imported tensor is returned if it is unchanged; torch may have resized it, replaced its
    memory, or made it require grad.
    """
    origin = origin_of(impl)
    if origin is not None and is_tensor(origin) \
            and (not storage_flags(impl) & READONLY or hasattr(origin, "_is_read_only")) \
            and is_same_tensor(impl, origin) \
            and not origin.requires_grad:
        storage_of(impl).check()
        return origin
    impl.require_defined("Tensor")
    return _new_tensor(impl, None, (storage_flags(impl) & READONLY) != 0, True)


cpdef object resized_operand(TensorImpl impl):  # pyi: torch.Tensor
    """Do as `torch_operand`, for an operation that gives other sizes to what does not fit.

    Memory of the bridge's own on a device is a torch storage, which torch would give other memory
    and leave the tensor with none. So it goes out as memory from outside, which torch cannot grow.
    """
    if device_type_of(impl) == DL_CPU \
            or storage_flags(impl) & (EXTERNAL | READONLY) or impl.c_numel == 0 \
            or has_negative_strides(impl):
        return torch_operand(impl)
    return taken_by_torch(impl)


cdef object _new_tensor(TensorImpl impl, object copy, bint writable, bint inside, bint once=False):
    """Return a torch.Tensor of the memory of `impl`, or of a copy of it.

    `inside`: it does not get out, and may be the base of the Storage (see `torch_views`). `once`:
    nobody else has the Storage, so that it needs no base.
    """
    cdef TensorImpl fitting
    if torch_type() == NULL:
        load_torch()
    impl.require_defined("to_torch")
    if copy is True:
        return export_torch(requested_copy(impl, "to_torch"))
    fitting = fit_for_torch(impl, copy, writable)
    if fitting is not impl:
        return export_torch(fitting)
    if once and device_type_of(impl) == DL_CPU \
            and torch_owner(storage_of(impl)) is None:
        return taken_by_torch(impl)
    tensor = torch_view(impl, True)
    if not inside and tensor is storage_of(impl).base:
        _remember(impl, tensor)
        return outgoing_alias(impl, tensor)
    if inside:
        _remember(impl, tensor)
    elif _is_second_export(impl):
        _set_origin(impl, tensor)
        return outgoing_alias(impl, tensor)
    return tensor


cdef int _remember(TensorImpl impl, object tensor) except -1:
    """Keep `tensor`, for the next export or operation; aliases of it get out."""
    if not storage_flags(impl) & (EXTERNAL | READONLY):
        _set_origin(impl, tensor)
    return 0


cdef int _set_origin(TensorImpl impl, object tensor) except -1:
    with cython.critical_section(impl):
        set_impl_flags(impl, impl.flags | OWN_ORIGIN)
        impl.origin = tensor
    return 0


cdef bint _is_second_export(TensorImpl impl) except -1:
    """Return whether `impl`, a view of its memory, was exported before; note that it was.

    Then its torch.Tensor is worth keeping: an alias takes a fifth of the time of a view.
    """
    cdef bint found
    if has_origin(impl) or storage_flags(impl) & READONLY:
        return False
    with cython.critical_section(impl):
        found = (impl.flags & OWN_ORIGIN) != 0
        set_impl_flags(impl, impl.flags | OWN_ORIGIN)
    return found


cdef TensorImpl fit_for_torch(
    TensorImpl impl, object copy, bint writable, str library="torch", bint forward=True,
):
    """Return `impl` if torch can hold its memory as it is, else a copy.

    `writable`: read-only memory may be shared. `library`: another one that is like torch, also
    in that strides must not be negative if `forward`. Raises BufferError: a copy is needed and
    `copy` is False.
    """
    cdef str why, instead = ""
    if storage_flags(impl) & READONLY and not writable:
        why = f"the memory is read-only, which a {library} tensor cannot be"
        if library == "torch":
            instead = ", or share it with to_torch(writable=True) and do not write"
    elif forward and has_negative_strides(impl):
        why = f"the strides {impl.strides().vec()} are negative, which {library} does not support"
    else:
        return impl
    if copy is False:
        raise BufferError(
            f"{library} cannot share it: {why}. Allow a copy with copy=None{instead}.")
    return reported_copy(impl, why, "to_torch")


@cython.critical_section
cdef bint has_negative_strides(TensorImpl impl) noexcept:
    """Return whether some dimension of more than one element has a negative stride."""
    cdef int i
    if impl.c_numel:
        for i in range(impl.ndim):
            if impl.c_strides()[i] < 0 and impl.c_sizes[i] > 1:
                return True
    return False


cdef object forward_operand(TensorImpl impl):
    """Return a torch.Tensor of the same elements to write to, with negative strides reversed."""
    cdef TensorImpl forward
    cdef Dims strides
    cdef int64_t offset
    cdef int i
    if not has_negative_strides(impl):
        return torch_operand(impl)
    impl = seen(impl)
    offset = impl.offset
    strides = new_dims(impl.ndim)
    for i in range(impl.ndim):
        strides.data[i] = impl.c_strides()[i]
        if strides.data[i] < 0 and impl.c_sizes[i] > 1:
            offset += (impl.c_sizes[i] - 1) * strides.data[i]
            strides.data[i] = -strides.data[i]
    forward = alias(impl, "to_torch")
    forward.set_strided(impl.c_sizes, strides.data, impl.ndim, impl.c_numel)
    forward.offset = offset
    return torch_operand(forward)


# Size in bytes -> a type that torch copies and reverses, as it does not uint16 or float8.
cdef dict _BITS = {
    size: as_type(name) for size, name in (
        (1, "uint8"), (2, "int16"), (4, "int32"), (8, "int64"), (16, "complex128"))}


cdef bint torch_computes(TypeMeta dtype) except -1:
    """Return whether torch converts and fills elements of the type.

    It names types of fewer than eight bits, and moves none of their elements.
    """
    return dtype.torch is not None and dtype.c_dlpack.bits >= 8


cdef TensorImpl as_bits(TensorImpl impl):
    """Return a TensorImpl of the same memory whose elements torch moves whatever they mean."""
    cdef TypeMeta bits = _BITS.get((<TypeMeta>dtype_of(impl)).itemsize)
    cdef TensorImpl out
    if bits is None:
        return impl
    out = alias(impl, "to_torch")
    out.c_dtype = bits
    out.origin = None
    out.flags &= ~OWN_ORIGIN
    return out


cdef list _repeated(TensorImpl impl):
    """Return the dimensions whose elements all are one, which torch refuses to write."""
    return [i for i in range(impl.ndim) if impl.c_strides()[i] == 0 and impl.c_sizes[i] > 1]


cdef TensorImpl _at_the_last(TensorImpl impl, list dims):
    """Return a view with one element in each of `dims`, the last, which stays when all are written.
    """
    cdef TensorImpl out = alias(impl, "to_torch")
    cdef Dims sizes = new_dims(impl.ndim)
    cdef int64_t numel = 1, offset = impl.offset
    cdef int i
    for i in range(impl.ndim):
        sizes.data[i] = impl.c_sizes[i]
        if i in dims:
            offset += (impl.c_sizes[i] - 1) * impl.c_strides()[i]
            sizes.data[i] = 1
        numel *= sizes.data[i]
    out.set_strided(sizes.data, impl.c_strides(), impl.ndim, numel)
    out.offset = offset
    return out


cdef TensorImpl each_once(TensorImpl impl):
    """Return a view of `impl` to write one value to all elements."""
    repeated = _repeated(impl)
    return _at_the_last(impl, repeated) if repeated and impl.c_numel else impl


def copy_between_devices(TensorImpl dst, TensorImpl src) -> None:
    """Copy elements to or from memory that the CPU cannot access, on torch's current stream.

    Complete on return if one of the two is in host memory. Raises EnforceBufferError: torch
    cannot copy, with torch's reason.
    """
    load_torch()
    src, dst = seen(src), seen(dst)
    try:
        repeated = _repeated(dst)
        if repeated:
            dst, src = _at_the_last(dst, repeated), _at_the_last(src, repeated)
        reversed_dims = [
            i for i in range(src.ndim)
            if src.c_sizes[i] > 1 and (src.c_strides()[i] < 0) != (dst.c_strides()[i] < 0)]
        if reversed_dims or not torch_computes(src.c_dtype):
            dst, src = as_bits(dst), as_bits(src)
        target, source = forward_operand(dst), forward_operand(src)
        target.copy_(source.flip(reversed_dims) if reversed_dims else source)
    except (BufferError, MemoryError):
        raise
    except Exception as error:
        raise EnforceBufferError(
            f"torch does not copy from {src.device()} to {dst.device()}: {error}",
            "copy") from error


register_device_copy(copy_between_devices)
