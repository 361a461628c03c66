# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""What at.Tensor does to its elements: write, convert, move."""

from libc.string cimport memset

from bridge.c10.copy cimport asked_copy, copy_elements
from bridge.c10.device cimport host_accessible
from bridge.c10.observe cimport copying, observed, outermost, unlikely, watched
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, allocated
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.c10 cimport views
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.import_tensor cimport import_tensor
from bridge.exchange.numpy cimport export_array
from bridge.exchange.torch_api cimport is_torch_tensor
from bridge.exchange.torch_export cimport export_torch, forward_operand, torch_operand
from bridge.wrapper cimport Wrapper

from bridge.c10.device import as_device
from bridge.c10.errors import (
    EnforceIndexError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)
from bridge.c10.options import as_options
from bridge.exchange.to_device import to_device

cdef object _wrap = None


cdef int require_pod(TensorImpl impl, str caller) except -1:
    """Only bridge.asarray makes at.Tensors of strings, to be read and no more."""
    if not impl.c_dtype.c_is_pod and impl.storage is not None:
        raise EnforceNotMet(
            f"{caller.rpartition('.')[2]} is for plain memory, and the elements are of "
            f"{impl.c_dtype}. Use tolist(), or caffe2.Tensor.", caller, condition="dtype().is_pod")
    return 0


def set_wrap(wrap):
    """Hand over how an at.Tensor is made of a TensorImpl (at.tensor calls it)."""
    global _wrap
    _wrap = wrap


cdef TensorImpl _impl(object x):
    return (<Wrapper?>x).impl


cdef TensorImpl scalar(object value, TypeMeta dtype, str caller):
    """A 0-d tensor in host memory with a Python number, converted as torch converts it."""
    import torch
    target = dtype.torch
    try:
        if target is not None:
            return import_tensor(torch.full((), value, dtype=target, device="cpu"))
    except NotImplementedError:
        pass                    # a type that torch cannot fill; NumPy can
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise EnforceTypeError(
            f"{value!r} is no element of {dtype}: {error}", caller) from error
    import numpy
    return import_tensor(numpy.full((), value, dtype=dtype.numpy))


cdef TensorImpl converted(TensorImpl src, TypeMeta dtype, str caller):
    """`src` itself if it is of the type, else a row-major copy converted by torch or NumPy."""
    cdef TensorImpl out
    if src.c_dtype is dtype:
        return src
    require_pod(src, caller)
    if not dtype.c_is_pod:
        raise EnforceNotMet(
            f"Plain memory does not become {dtype}.", caller, condition="T.is_pod")
    target = dtype.torch
    if target is not None and src.c_dtype.torch is not None:
        out = allocated(src.c_sizes, src.ndim, dtype, src.storage.device_type,
                        src.storage.device_index, caller)
        try:
            export_torch(out).copy_(torch_operand(src))
            return out
        except (NotImplementedError, BufferError):
            pass                    # torch has the type's name, and less of it than NumPy
    return import_tensor(export_array(src, caller).astype(dtype.numpy), None, True)


cdef TensorImpl source_of(object value, TensorImpl like_this, str caller):
    """What is to be copied into `like_this`: any tensor, a number, or nested lists."""
    if isinstance(value, Wrapper):
        return (<Wrapper>value).impl
    if isinstance(value, (bool, int, float, complex)):
        return scalar(value, like_this.c_dtype, caller)
    try:
        return import_tensor(value)
    except TypeError as error:
        if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
            import numpy
            return import_tensor(numpy.asarray(value))
        raise EnforceTypeError(
            f"An object of type {type(value).__name__} is neither a number, nor a list of numbers, "
            "nor a tensor.", caller) from error


cdef int _copy_into(TensorImpl dst, TensorImpl src, str caller) except -1:
    dst.require_defined(caller)
    require_pod(dst, caller)
    require_pod(src, caller)
    dst.writable(caller)
    src.data(caller)
    if src.c_dtype is not dst.c_dtype:
        src = converted(src, dst.c_dtype, caller)
    if src.ndim == 0 and not host_accessible(dst.storage.device_type) \
            and host_accessible(src.storage.device_type) and dst.c_dtype.torch is not None:
        # by its value: no copy to the device, for which the host would wait
        if dst.c_numel:
            forward_operand(dst).fill_(torch_operand(src))
        return 0
    if src.storage.device_type != dst.storage.device_type and src.c_numel != dst.c_numel:
        src = <TensorImpl>to_device(src, dst.device())
    # leading dimensions of size one may be too many, as NumPy allows in assignments
    while src.ndim > dst.ndim and src.c_sizes[0] == 1:
        src = views.select(src, 0, 0, caller)
    _require_fits(src, dst, caller)
    src = views.expand(src, dst.c_sizes, dst.ndim, caller)
    return copy_elements(dst, src, caller)


cdef int _require_fits(TensorImpl src, TensorImpl dst, str caller) except -1:
    """Each size of `src`, counted from the last, is that of `dst` or one."""
    cdef int lead = dst.ndim - src.ndim
    cdef bint fits = lead >= 0
    cdef int i
    for i in range(src.ndim if fits else 0):
        if src.c_sizes[i] != 1 and src.c_sizes[i] != dst.c_sizes[lead + i]:
            fits = False
    if not fits:
        raise EnforceValueError(
            f"Elements of sizes {src.sizes().vec()} do not fit into sizes {dst.sizes().vec()}: "
            "each size has to be the same, or one.", caller)
    return 0


def copy_(tensor, src):
    """See at.Tensor.copy_."""
    cdef TensorImpl dst = _impl(tensor)
    dst.require_defined("Tensor.copy_")
    _copy_into(dst, source_of(src, dst, "Tensor.copy_"), "Tensor.copy_")
    return tensor


def assign(view, value):
    """``x[index] = value`` for a basic index, whose view `view` is."""
    cdef TensorImpl dst = _impl(view)
    _copy_into(dst, source_of(value, dst, "Tensor.__setitem__"), "Tensor.__setitem__")


def advanced_index(tensor, key):
    """``x[index]`` for an index that torch has and basic indexing has not; a copy."""
    import torch
    cdef TensorImpl impl = _impl(tensor)
    if isinstance(key, str) or isinstance(key, (float, complex, dict, bytes)):
        raise EnforceTypeError(
            f"{key!r} is no index. An index is made of ints, slices, None, ..., or tensors of "
            "ints or bools.", "Tensor.__getitem__")
    source = torch_operand(impl)
    try:
        found = source[_torch_key(key)]
    except IndexError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise EnforceTypeError(f"{key!r} is no index here: {error}",
                               "Tensor.__getitem__") from error
    if found.data_ptr() and found.untyped_storage().data_ptr() == \
            source.untyped_storage().data_ptr():
        found = found.clone()
    return _wrap(import_tensor(found))


def advanced_assign(tensor, key, value):
    """``x[index] = value`` for an index that only torch has."""
    cdef TensorImpl impl = _impl(tensor)
    if not isinstance(value, (bool, int, float, complex)):
        value = torch_operand(source_of(value, impl, "Tensor.__setitem__"))
    try:
        target = torch_operand(impl)
        target[_torch_key(key)] = value
        write_back(impl, target)
    except IndexError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, EnforceNotMet):
            raise
        raise EnforceTypeError(f"{key!r} is no index here: {error}",
                               "Tensor.__setitem__") from error


def _torch_key(key):
    """An index as torch takes it; tensors of all frameworks become torch's."""
    if isinstance(key, tuple):
        return tuple([_torch_key(one) for one in key])
    if isinstance(key, range):
        return list(key)
    if isinstance(key, (list, int, slice)) or key is None or key is Ellipsis:
        return key
    tensor = torch_operand(import_tensor(key))
    if tensor.dtype.is_signed or tensor.dtype.itemsize == 1:
        return tensor
    signed = tensor.long()          # of unsigned integers torch takes bytes only, as a mask
    if (signed < 0).any():
        raise EnforceIndexError(
            f"An index in {key!r} is out of range.", "Tensor.__getitem__")
    return signed


def fill_(tensor, value):
    """See at.Tensor.fill_."""
    cdef TensorImpl dst = _impl(tensor)
    cdef TensorImpl src
    dst.require_defined("Tensor.fill_")
    if isinstance(value, (bool, int, float, complex)):
        src = scalar(value, dst.c_dtype, "Tensor.fill_")
    else:
        src = source_of(value, dst, "Tensor.fill_")
        if src.c_numel != 1 or src.ndim != 0:
            raise EnforceValueError(
                f"fill_ takes a number or a 0-d tensor, not sizes {src.sizes().vec()}. Use "
                "copy_.", "Tensor.fill_", condition="value.dim() == 0")
    _copy_into(dst, src, "Tensor.fill_")
    return tensor


def zero_(tensor):
    """See at.Tensor.zero_."""
    zero_elements(_impl(tensor))
    return tensor


cdef int zero_elements(TensorImpl dst) except -1:
    cdef char* to = dst.data("Tensor.zero_")
    cdef TensorImpl src
    require_pod(dst, "Tensor.zero_")
    dst.writable("Tensor.zero_")
    if dst.c_numel == 0:
        return 0
    if host_accessible(dst.storage.device_type) and dst.flags & CONTIGUOUS:
        # every POD type has zero as all bits clear
        memset(to, 0, dst.c_numel * dst.c_dtype.itemsize)
        return 0
    if not host_accessible(dst.storage.device_type):
        forward_operand(dst).zero_()
        return 0
    src = allocated(dst.c_sizes, 0, dst.c_dtype, DL_CPU, 0, "Tensor.zero_")
    memset(src.data("Tensor.zero_"), 0, dst.c_dtype.itemsize)
    src = views.expand(src, dst.c_sizes, dst.ndim, "Tensor.zero_")
    return copy_elements(dst, src, "Tensor.zero_")


def to(tensor, *args, copy=False, non_blocking=False, dtype=None, device=None, other=None):
    """See at.Tensor.to."""
    cdef TensorImpl impl = _impl(tensor)
    cdef TensorImpl out
    if unlikely(observed) and outermost():
        return watched(
            "to", tensor, "at.Tensor", to, (tensor, *args),
            {"copy": copy, "non_blocking": non_blocking, "dtype": dtype, "device": device,
             "other": other})
    impl.data("Tensor.to")
    flags = [one for one in args if isinstance(one, bool)]
    if len(flags) > 2:
        raise EnforceTypeError(
            "Of flags to() takes two, non_blocking and copy.", "Tensor.to")
    for one in (*args, other):
        if one is not None and not isinstance(one, bool):
            dtype, device = _named(one, dtype, device)
    out = impl
    if device is not None:
        out = <TensorImpl>to_device(out, as_device(device))
    if dtype is not None:
        out = _of_type(out, as_type(dtype))
    if out is not impl:
        return _wrap(out)
    if not copy and flags[1:] != [True]:
        return tensor
    return _wrap(asked_copy(impl, "Tensor.to"))


def _named(one, dtype, device):
    """(dtype, device) with what `one` says of them: a tensor, options, a type or a device."""
    if isinstance(one, Wrapper):
        return (<Wrapper>one).impl.c_dtype, (<Wrapper>one).impl.device()
    if is_torch_tensor(one):
        return one.dtype, one.device
    options = as_options(one)
    return (options.dtype() if options.has_dtype() else dtype,
            options.device() if options.has_device() else device)


cdef TensorImpl _of_type(TensorImpl impl, TypeMeta dtype):
    if unlikely(observed) and impl.c_dtype is not dtype and dtype.c_is_pod:
        copying(impl.c_numel * dtype.itemsize, f"{impl.c_dtype} becomes {dtype}")
    return converted(impl, dtype, "Tensor.to")


def write_back(TensorImpl impl, tensor):
    """Copy what torch wrote into a copy of `impl`; nothing where it shared the memory."""
    cdef TensorImpl back
    if impl.c_numel == 0 or impl.origin is tensor:
        return
    if tensor.data_ptr() == <size_t>impl.data("Tensor"):
        return
    back = import_tensor(tensor)
    if back.c_dtype is impl.c_dtype:
        copy_elements(impl, views.expand(back, impl.c_sizes, impl.ndim, "Tensor"), "Tensor")
