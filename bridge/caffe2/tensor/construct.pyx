# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The constructor of caffe2.Tensor: from a device, sizes, values or another tensor."""

from libc.stdint cimport int64_t

from bridge.c10 cimport content, resizing, views
from bridge.c10.dims cimport Dims, parse_dims, require_numel
from bridge.c10.copy cimport copy_elements
from bridge.c10.device cimport Device, as_device
from bridge.c10.reports cimport is_observed, outermost, report_copy, run_observed, unlikely
from bridge.c10.storage cimport new_storage
from bridge.c10.tensor_impl cimport TensorImpl, allocated, nbytes_now, new_impl
from bridge.c10.type_meta cimport TypeMeta, as_type, string_type, undefined_type
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.import_tensor cimport import_tensor
from bridge.wrapper cimport Wrapper

from bridge.c10.element_view import as_element
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.c10.raw_parts import from_items
from bridge.caffe2.base.wrapped_errors import wrap_error
from bridge.exchange.device_memory import current_index


cdef TensorImpl from_arguments(tuple args, object T):
    """Return the TensorImpl for the constructor's arguments, which are not a single at.Tensor.

    Raises EnforceNotMet, also a TypeError: no constructor takes them; and as `from_values`.
    """
    cdef TensorImpl impl
    cdef Device device
    cdef Dims dims
    caller = "caffe2.Tensor"
    if len(args) == 1 and T is None:
        device = _device(args[0])
        if device is None:
            return _shared(args[0], caller)
        return unallocated(device.c_type, current_index(device))
    if len(args) == 2 or len(args) == 3 or T is not None:
        if len(args) == 2 and T is None:
            device = _device(args[1])
            if device is not None:
                if isinstance(args[0], Wrapper):
                    if unlikely(is_observed()) and outermost():
                        return run_observed(
                            "caffe2.Tensor", args[0], "caffe2.Tensor", _copied_to,
                            (args[0], device))
                    return _copied_to(args[0], device)
                dims = parse_dims(args[0], caller)
                impl = unallocated(device.c_type, current_index(device))
                resizing.resize(impl, dims.data, dims.n, caller)
                return impl
        if len(args) == 3:
            if T is not None:
                raise EnforceTypeError("The element type is given twice.", caller)
            T = args[2]
        if len(args) >= 2 and not isinstance(args[1], (str, Device)):
            return from_values(args[0], args[1], T, caller)
    raise EnforceTypeError(
        f"caffe2.Tensor takes a device, sizes and a device, sizes and values (and T), or an "
        f"at.Tensor, not {len(args)} arguments like these: "
        f"{', '.join(type(one).__name__ for one in args)}.", caller)


cdef TensorImpl _shared(object source, str caller):
    """Return the TensorImpl of a tensor of another library, on the same memory.

    Raises EnforceNotMet: it is not a tensor (also a TypeError), or cannot be exchanged (also a
    BufferError).
    """
    cdef TensorImpl impl
    if isinstance(source, (bool, int, float, complex, str, list, tuple, dict, type(None))):
        raise _no_constructor(source, caller)
    try:
        if unlikely(is_observed()) and outermost():
            impl = run_observed(caller, source, caller, _imported, (source,))
        else:
            impl = import_tensor(source)
    except TypeError as error:
        raise _no_constructor(source, caller) from error
    except BufferError as error:
        raise wrap_error("The tensor cannot be shared", caller, error) from error
    return impl


def _imported(source):
    """Return a TensorImpl of the memory of a tensor of any library."""
    return import_tensor(source)


def _no_constructor(source, caller):
    """Return the error that no constructor takes `source` alone."""
    return EnforceTypeError(
        "caffe2.Tensor takes a device, sizes and a device, sizes and values, or a tensor of any "
        f"library, not {type(source).__name__}. bridge.asarray(x) makes an at.Tensor of numbers "
        "and lists.", caller)


cdef Device _device(object spec):
    """Return the device that `spec` names, or None."""
    if isinstance(spec, (int, list, tuple)) and not hasattr(spec, "name"):
        return None
    try:
        return as_device(spec)
    except TypeError:
        return None


cdef TensorImpl unallocated(int device_type, int device_index):
    """Return the TensorImpl of ``Tensor(D)``: sizes (0,), no type, no memory."""
    cdef int64_t zero = 0
    cdef TensorImpl impl = new_impl(new_storage(device_type, device_index), undefined_type)
    impl.set_contiguous(&zero, 1, 0)
    return impl


def _copied_to(Wrapper source, Device device):
    """Return a copy of the TensorImpl of `source` on the device."""
    cdef TensorImpl impl = source.impl
    cdef TensorImpl out
    impl.require_defined("caffe2.Tensor")
    if unlikely(is_observed()):
        report_copy(nbytes_now(impl), f"caffe2.Tensor(x, '{device}') is a copy")
    out = unallocated(device.c_type, current_index(device))
    content.copy_from(out, impl, "caffe2.Tensor")
    return out


def from_values(dims: Dims, values: ArrayLike, T: TypeLike | None, caller: str) -> TensorImpl:
    """Return a new TensorImpl on the CPU with a copy of `values`, of type `T` or NumPy's for them.

    Raises EnforceNotMet: negative sizes, values that are not of `T` or any element type, or another
    number of values (these also a TypeError, ValueError or BufferError).
    """
    cdef Dims sizes = parse_dims(dims, caller)
    cdef TypeMeta dtype = None if T is None else as_type(T)
    cdef int64_t numel = require_numel(sizes.data, sizes.n, caller)
    cdef TensorImpl impl, source
    if dtype is not None and not dtype.c_is_pod or dtype is None and _is_text(values):
        items = _items_of(values, dtype, caller)
        _match(len(items), numel, caller)
        return from_items(dims, string_type if dtype is None else dtype, items)
    array = _array_of(values, dtype, caller)
    _match(array.size, numel, caller)
    try:
        source = import_tensor(array.reshape(-1))
    except BufferError as error:
        raise wrap_error("The values are not a tensor", caller, error) from error
    impl = allocated(sizes.data, sizes.n, source.c_dtype, DL_CPU, 0, caller)
    copy_elements(impl, views.view(source, sizes.data, sizes.n, caller), caller)
    return impl


cdef int _match(int64_t n, int64_t numel, str caller) except -1:
    if n != numel:
        raise EnforceValueError(
            f"There are {n} values for {numel} elements.", caller,
            condition="values.size() == numel()")
    return 0


def _is_text(values):
    return isinstance(values, (list, tuple)) and len(values) > 0 \
        and isinstance(values[0], (str, bytes))


cdef object _array_of(object values, TypeMeta dtype, str caller):
    """Return a contiguous NumPy array of `values`, of type `dtype` or NumPy's for them, copied.

    Raises EnforceNotMet, also a TypeError or ValueError: they are not numbers, ragged, or do not
    fit the type.
    """
    import numpy

    try:
        if dtype is None:
            return numpy.ascontiguousarray(numpy.array(values))
        plain = numpy.array(values)
        if plain.dtype.kind not in "biufc" and plain.dtype.kind != "V":
            raise TypeError(f"values of {plain.dtype} are not numbers")
        with numpy.errstate(over="ignore", invalid="ignore"):
            return numpy.ascontiguousarray(
                numpy.array(values, dtype=dtype.numpy) if plain.size else plain.astype(dtype.numpy)
            )
    except OverflowError as error:
        raise EnforceValueError(f"A value does not fit {dtype}: {error}", caller) from error
    except ValueError as error:
        raise EnforceValueError(f"The values are not an array: {error}", caller) from error
    except TypeError as error:
        raise EnforceTypeError(f"The values are not an array: {error}", caller) from error


cdef list _items_of(object values, TypeMeta dtype, str caller):
    """Return a list of `values` as elements of a non-POD type, strings if `dtype` is None.

    Raises EnforceNotMet, also a TypeError: they are not a sequence, or not of the type.
    """
    meta = TypeMeta.Make("string") if dtype is None else dtype
    if isinstance(values, (str, bytes)):
        raise EnforceTypeError("Values are a sequence, not one string.", caller)
    try:
        items = list(values)
    except TypeError as error:
        raise EnforceTypeError(
            f"Values are a sequence, not {type(values).__name__}.", caller
        ) from error
    return [as_element(one, meta, caller) for one in items]
