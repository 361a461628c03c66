# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Conversions of at.Tensor: element types, devices, and values that are copied into a tensor.

Views of the same bytes as another element type, too.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from bridge.c10.copy cimport requested_copy
from bridge.c10.layout cimport MAX_OFFSET, checked_mul, checked_numel, wrapped_mul
from bridge.c10.reports cimport is_observed, report_copy, unlikely
from bridge.c10.tensor_impl cimport (
    TensorImpl,
    allocatable,
    allocated,
    device_index_of,
    device_type_of,
    dtype_of,
    has_origin,
    is_pod_now,
    is_undefined,
    numel_of,
    seen,
    snapshot,
)
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.c10 cimport views
from bridge.exchange.device_memory cimport to_device
from bridge.exchange.import_tensor cimport import_tensor
from bridge.exchange.numpy cimport export_array
from bridge.exchange.torch_api cimport is_torch_tensor
from bridge.exchange.torch_export cimport export_torch, torch_computes, torch_operand
from bridge.wrapper cimport Wrapper

from bridge.c10.device import as_device
from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.c10.options import as_options
from bridge.exchange.torch_devices import lacks_memory


cdef int require_pod(TensorImpl impl, str caller) except -1:
    """Raise EnforceNotMet if the elements are not plain memory.

    Such at.Tensors, of strings, come from bridge.asarray only; their elements can only be read.
    """
    if not is_pod_now(impl) and not is_undefined(impl):
        raise EnforceNotMet(
            f"{caller.rpartition('.')[2]} requires plain memory, and the elements are of "
            f"{impl.dtype()}. Use tolist(), or caffe2.Tensor.", caller, condition="dtype().is_pod")
    return 0


cdef TensorImpl scalar(object value, TypeMeta dtype, str caller):
    """Return a 0-d tensor in host memory with a Python number, converted as torch converts it."""
    import torch
    target = dtype.torch
    try:
        if target is not None:
            return import_tensor(torch.full((), value, dtype=target, device="cpu"))
    except NotImplementedError:
        pass                    # a type that torch cannot fill, but NumPy can
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        if lacks_memory(error):
            raise MemoryError(f"{caller}: {error}") from error
        raise EnforceTypeError(
            f"{value!r} is not a value of {dtype}: {error}", caller) from error
    import numpy
    return import_tensor(numpy.full((), value, dtype=dtype.numpy))


cdef TensorImpl converted(TensorImpl src, TypeMeta dtype, str caller):
    """Return `src` if it has the type, else a row-major copy converted by torch or NumPy."""
    cdef TensorImpl out, given = src
    if dtype_of(src) == <PyObject*>dtype:
        return src
    src = seen(src)
    require_pod(src, caller)
    if not dtype.c_is_pod:
        raise EnforceNotMet(
            f"Plain memory cannot be converted to {dtype}.", caller, condition="T.is_pod")
    if torch_computes(dtype) and torch_computes(src.c_dtype):
        try:
            if not has_origin(given):
                torch_operand(given)    # which a snapshot would not keep for the next time
            # torch runs Python, and meanwhile other threads: they may give `src` other sizes.
            src = snapshot(given)
            out = allocated(src.c_sizes, src.ndim, dtype, allocatable(device_type_of(src)),
                            device_index_of(src), caller)
            export_torch(out).copy_(torch_operand(src))
            return out
        except (NotImplementedError, BufferError):
            pass                    # torch names the type but does not support the conversion
    return import_tensor(export_array(src, caller).astype(dtype.numpy), None, True)


cdef TensorImpl as_source(object value, TensorImpl target, str caller):
    """Return the elements to copy into `target`: a tensor, a number or nested lists.

    Tensors are shared; their element type and sizes may differ from those of `target`.
    """
    if isinstance(value, Wrapper):
        return (<Wrapper>value).impl
    if isinstance(value, (bool, int, float, complex)):
        return scalar(value, <TypeMeta>dtype_of(target), caller)
    try:
        return import_tensor(value)
    except TypeError as error:
        if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
            import numpy
            return import_tensor(numpy.asarray(value))
        raise EnforceTypeError(
            f"An object of type {type(value).__name__} is neither a number, nor a list of numbers, "
            "nor a tensor.", caller) from error


cdef TensorImpl convert_to(
    TensorImpl impl, tuple args, bint copy, object dtype, object device, object other,
):
    """Return `impl` if it has the type and device that the arguments specify, else a copy."""
    cdef TensorImpl out
    impl.data("Tensor.to")
    flags = [one for one in args if isinstance(one, bool)]
    if len(flags) > 2:
        raise EnforceTypeError(
            "to() takes at most two flags, non_blocking and copy.", "Tensor.to")
    # (*args, other) would leak where memory ends: Cython does not let go of its second part.
    for one in args + (other,):
        if one is not None and not isinstance(one, bool):
            dtype, device = _specified(one, dtype, device)
    out = impl
    if device is not None:
        out = to_device(out, as_device(device))
    if dtype is not None:
        out = _of_type(out, as_type(dtype))
    if out is impl and (copy or flags[1:] == [True]):
        return requested_copy(impl, "Tensor.to")
    return out


def _specified(one, dtype, device):
    """Return (dtype, device), replaced by those of `one`: a tensor, options, a type or a device."""
    if isinstance(one, Wrapper):
        return (<Wrapper>one).impl.dtype(), (<Wrapper>one).impl.device()
    if is_torch_tensor(one):
        return one.dtype, one.device
    options = as_options(one)
    return (options.dtype() if options.has_dtype() else dtype,
            options.device() if options.has_device() else device)


cdef TensorImpl _of_type(TensorImpl impl, TypeMeta dtype):
    if unlikely(is_observed()) and dtype_of(impl) != <PyObject*>dtype and dtype.c_is_pod:
        report_copy(numel_of(impl) * dtype.itemsize, f"{impl.dtype()} becomes {dtype}")
    return converted(impl, dtype, "Tensor.to")


cdef TensorImpl view_as_dtype(TensorImpl impl, object spec):
    """Return the same bytes as elements of another type; None if `spec` is not a type."""
    cdef TensorImpl out
    cdef TypeMeta dtype
    try:
        dtype = as_type(spec)
    except TypeError:
        return None
    impl = seen(impl)
    impl.data("Tensor.view")
    require_pod(impl, "Tensor.view")
    if not dtype.c_is_pod:
        raise EnforceNotMet(
            f"Plain memory cannot be viewed as {dtype}.", "Tensor.view", condition="T.is_pod")
    out = views.alias(impl, "Tensor.view")
    out.c_dtype = dtype
    if dtype.itemsize != impl.c_dtype.itemsize:
        _rescale(out, impl)
    return out


cdef int _rescale(TensorImpl out, TensorImpl impl) except -1:
    """Convert sizes, strides and offset of `out`, now those of `impl`, to its own item size."""
    cdef int64_t size = out.c_dtype.itemsize, old = impl.c_dtype.itemsize, ratio, i
    cdef int last = impl.ndim - 1
    if impl.ndim == 0 or (impl.c_strides()[last] != 1 and impl.c_sizes[last] != 1):
        raise EnforceNotMet(
            f"Only a contiguous last dimension can be viewed from {impl.c_dtype} as {out.c_dtype}, "
            "whose elements have another size.", "Tensor.view", condition="stride(-1) == 1")
    if size < old:
        ratio = old // size
        for i in range(last):
            out.c_strides()[i] = wrapped_mul(out.c_strides()[i], ratio)
        out.c_sizes[last] = wrapped_mul(out.c_sizes[last], ratio)
        # other sizes may be zero, and then those of the last dimension are as many as any
        if checked_mul(impl.c_sizes[last], ratio) < 0 or checked_numel(out.c_sizes, impl.ndim) < 0:
            raise EnforceValueError("The number of elements does not fit an int64.", "Tensor.view")
        out.offset *= ratio
        if out.offset > MAX_OFFSET:
            out.offset = 0      # there are no elements
    else:
        ratio = size // old
        uneven = impl.c_sizes[last] % ratio != 0 or impl.offset % ratio != 0
        for i in range(last):
            if impl.c_strides()[i] % ratio != 0 and impl.c_sizes[i] > 1:
                uneven = True
        if uneven:
            raise EnforceNotMet(
                f"Sizes, strides and offset are not all multiples of {ratio}, the number of "
                f"{impl.c_dtype} elements in one of {out.c_dtype}.", "Tensor.view")
        for i in range(last):
            out.c_strides()[i] //= ratio
        out.c_sizes[last] //= ratio
        out.offset //= ratio
    out.c_strides()[last] = 1
    out.finish()
    return 0
