# SPDX-License-Identifier: Apache-2.0
"""The doors ``__array_interface__``, ``__array__`` and ``__cuda_array_interface__``.

NumPy uses address, sizes and strides of an interface unchecked, and does not compare them with the
length of the buffer (NumPy's array interface protocol, version 3). So they are checked here.
"""

from __future__ import annotations

from typing import Any

import numpy

from bridge.c10.errors import EnforceTypeError
from bridge.c10.tensor_impl import TensorImpl
from bridge.c10.type_meta import TypeMeta
from bridge.exchange.dlpack_import import adopt_cuda_memory
from bridge.exchange.fresh_memory import FreshMemoryError, as_copy, must_prove, was_copied
from bridge.exchange.library_fit import refuse_nulls
from bridge.exchange.numpy import import_array
from bridge.exchange.refusal import reason_of
from bridge.exchange.streams import wait_for_producer

# No machine has more bytes of address space: 57 bits, half of it the kernel's.
_ADDRESSES = 2**56


def import_array_interface(x: Any, copy: bool | None) -> TensorImpl:
    """Return the TensorImpl of the memory that ``__array_interface__`` describes.

    Shared; copied if each read describes new memory (see `fresh_memory`). Raises BufferError: the
    description is invalid, or a copy is needed and `copy` is False.
    """
    array = _described(x)
    reason = _why_new(x, array, _described(x)) if must_prove(copy) else None
    return _imported(array, x, copy, reason)


class _Description:
    """An ``__array_interface__`` that was read once, and the object that it describes."""

    def __init__(self, interface: dict[str, Any], x: Any) -> None:
        self.__array_interface__ = interface
        self.x = x


def _described(x: Any) -> numpy.ndarray[Any, Any]:
    """Return the NumPy array that one read of the attribute describes, or ``__array_struct__``."""
    interface = _interface_of(x, "__array_interface__")
    described = x
    if interface is not None:
        _check(x, interface)
    try:
        if interface is not None:
            described = _Description(_with_data(x, interface), x)
        return numpy.asarray(described)
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.__array_interface__ describes no array: {reason_of(error)}"
        ) from error


def _with_data(x: Any, interface: dict[str, Any]) -> dict[str, Any]:
    """Return a checked interface that names its data: an address, or a buffer.

    Without data it is the buffer of `x`, where NumPy would take `x` for a scalar, and write its
    text past the end of the array's memory. An array without elements needs no memory.
    """
    data = interface.get("data")
    nowhere = data is None or (
        isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], int) and not data[0]
    )
    if nowhere and 0 in interface["shape"]:
        memory = memoryview(bytearray(numpy.dtype(interface["typestr"]).itemsize))
        memory = memory.toreadonly() if data and data[1] else memory
        return {**interface, "data": memory, "offset": 0, "strides": None}
    return {**interface, "data": memoryview(x)} if data is None else interface


def import_array_method(x: Any, copy: bool | None) -> TensorImpl:
    """Return the TensorImpl of the array that ``x.__array__()`` returns.

    Shared; copied if `x` makes a new array at each call. Raises BufferError: it returns none, some
    of its elements are masked, or a copy is needed and `copy` is False.
    """
    array = _array(x)
    reason = _why_copied(x, array) if must_prove(copy) else None
    return _imported(array, x, copy, reason)


def _imported(array: Any, x: Any, copy: bool | None, reason: str | None) -> TensorImpl:
    """Return the TensorImpl of an array of `x`; `reason`: why it is a copy, None if it is not."""
    if reason is None:
        return import_array(array, None if copy is True else copy)
    if copy is False and array.size and array.dtype.kind in "biufcV":
        raise FreshMemoryError(f"It cannot be shared: {reason}. Allow a copy with copy=None.")
    impl = import_array(array, None)
    if was_copied(impl):
        return impl  # it was copied once more, and that is reported
    return as_copy(impl, x, copy, reason)


def _array(x: Any) -> numpy.ndarray[Any, Any]:
    try:
        array: numpy.ndarray[Any, Any] = numpy.asanyarray(x)
    except BufferError:  # of an inner door, which says more
        raise
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.__array__ does not return an array: {reason_of(error)}"
        ) from error
    if isinstance(array, numpy.ma.MaskedArray):
        nulls = int(numpy.ma.getmaskarray(array).sum())
        refuse_nulls(type(x).__name__, nulls, "numpy.ma.filled(x[...], value)")
        array = array.view(numpy.ndarray)
    return array


def _why_copied(x: Any, array: numpy.ndarray[Any, Any]) -> str | None:
    """Return why `array`, which `x` returned, is a copy; None if it is not."""
    again = None
    if _takes_copy(x):
        try:
            again = numpy.asanyarray(x, copy=False)
        except ValueError as error:
            return f"{type(x).__name__}.__array__ copies: {reason_of(error)}"
    return _why_new(x, array, _array(x) if again is None else again)


def _why_new(x: Any, array: Any, again: Any) -> str | None:
    if array.size == again.size and (not array.size or array.ctypes.data == again.ctypes.data):
        return None
    return f"{type(x).__name__} returns new memory at each call"


def _takes_copy(x: Any) -> bool:
    """Return whether ``x.__array__`` can be asked not to copy, as NumPy 2 does."""
    if numpy.lib.NumpyVersion(numpy.__version__) < "2.0.0":
        return False
    from inspect import Parameter, signature

    # NumPy takes an attribute of the object, too
    method = getattr(type(x), "__array__", None) or x.__array__
    try:
        parameters = signature(method).parameters
    except (TypeError, ValueError):  # a method that is compiled
        return False
    return "copy" in parameters or any(
        one.kind is Parameter.VAR_KEYWORD for one in parameters.values()
    )


def import_cuda_interface(x: Any) -> TensorImpl | None:
    """Return a TensorImpl over the memory that ``__cuda_array_interface__`` describes; shared.

    None: the attribute is. Follows the CUDA Array Interface, version 3, of Numba's documentation.
    It does not include the device of the memory; torch asks CUDA for it.

    Keeps `x`. torch's current stream waits for the stream that it names, unless there are no
    elements.

    Raises BufferError: a masked array, structured or foreign-endian elements, strides that are no
    whole number of elements, no CUDA device here, or a description that makes no sense.
    """
    interface = _interface_of(x, "__cuda_array_interface__")
    if interface is None:
        return None
    name = f"{type(x).__name__}.__cuda_array_interface__"
    _check(x, interface, "__cuda_array_interface__")
    shape, strides = interface["shape"], interface.get("strides")
    data = interface.get("data")
    if not isinstance(data, tuple) or len(data) != 2 or not isinstance(data[0], int):
        raise BufferError(f"{name} has the data {data!r}, and not (address, read-only).")
    address, readonly = data
    dtype = numpy.dtype(interface["typestr"])
    meta = _type_of(dtype)
    if meta is None:
        raise BufferError(
            f"{name} has elements of {interface['typestr']!r}, which is not a native numeric type. "
            "Give the bridge an object with __dlpack__, or convert it first."
        )
    steps = None
    if strides is not None:
        if any(step % dtype.itemsize for step in strides):
            raise BufferError(
                f"{name} has strides of {strides} bytes, no whole number of elements of "
                f"{dtype.itemsize}."
            )
        steps = tuple(step // dtype.itemsize for step in strides)
    if 0 in shape:
        address = 0
    index = _device_of(name, address)
    if address:  # else the stream may be of another device, and there is nothing to wait for
        wait_for_producer(index, interface.get("stream"))
    try:
        return adopt_cuda_memory(x, address, shape, steps, meta, index, bool(readonly))
    except (ValueError, OverflowError) as error:
        raise BufferError(f"{name} has sizes or strides of no memory: {error}") from error


def _type_of(dtype: numpy.dtype[Any]) -> TypeMeta | None:
    """Return the element type; None if it is foreign-endian, or no numeric type of the bridge."""
    if dtype == numpy.dtype("V2"):  # as torch has it
        return TypeMeta.Make("bfloat16")
    if dtype.kind not in "biufc" or not dtype.isnative:
        return None
    try:
        return TypeMeta.Make(dtype)
    except EnforceTypeError:  # long double
        return None


class _Byte:
    """A byte of CUDA memory, as torch takes it."""

    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {
            "version": 2,
            "typestr": "|u1",
            "shape": (1,),
            "data": (address, False),
        }


def _device_of(name: str, address: int) -> int:
    """Return the index of the CUDA device that `address` is on; of the current one for 0."""
    try:
        import torch

        if not torch.cuda.is_available():
            raise BufferError(
                f"The memory of {name} is on a CUDA device, and torch.cuda.is_available() is False."
            )
        if not address:
            return torch.cuda.current_device()
        with torch._C.DisableTorchFunction():  # a torch.device context would choose
            return int(torch.as_tensor(_Byte(address)).device.index)
    except (TypeError, ValueError, RuntimeError, AssertionError) as error:
        raise BufferError(f"{name} describes no CUDA memory at {address:#x}: {error}") from error


# The checks of both interfaces.


def _interface_of(x: Any, name: str) -> Any:
    """Return the attribute `name` of `x`; None if it has none. Raises BufferError: it fails."""
    try:
        return getattr(x, name, None)
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.{name} does not describe the memory: {reason_of(error)}"
        ) from error


def _check(x: Any, interface: Any, attribute: str = "__array_interface__") -> None:
    """Raise BufferError if `interface`, the value of `attribute` of `x`, is invalid.

    That is: not a dict, a masked array, elements without memory, or sizes and strides that lead
    out of the buffer or of the address space.
    """
    name = f"{type(x).__name__}.{attribute}"
    if not isinstance(interface, dict):
        raise BufferError(f"{name} is {type(interface).__name__}, not a dict.")
    if interface.get("mask") is not None:
        raise BufferError("A masked array has a mask besides its memory; it cannot be exchanged.")
    shape, strides = interface.get("shape"), interface.get("strides")
    if not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise BufferError(f"{name} has the invalid shape {shape!r}.")
    itemsize = _itemsize(name, interface)
    if strides is None:
        strides = _compact(shape, itemsize)
    if (
        not isinstance(strides, tuple)
        or len(strides) != len(shape)
        or not all(isinstance(step, int) for step in strides)
    ):
        raise BufferError(f"{name} has the strides {strides!r} for the shape {shape}.")
    if 0 in shape:
        return
    spans = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    low = sum(span for span in spans if span < 0)
    high = sum(span for span in spans if span > 0) + itemsize
    data, offset = interface.get("data"), interface.get("offset", 0)
    if isinstance(data, tuple):
        address = data[0] if len(data) == 2 and isinstance(data[0], int) else None
        if not address or address < 0 or address + low < 0 or address + high >= _ADDRESSES:
            raise BufferError(
                f"{name} has elements and no memory for them: its data is {data!r}, its shape "
                f"{shape} and its strides {strides}."
            )
        return
    try:
        length = memoryview(x if data is None else data).nbytes
    except TypeError as error:
        raise BufferError(f"{name} has data that is not a buffer: {error}") from error
    if not isinstance(offset, int) or offset + low < 0 or offset + high > length:
        raise BufferError(
            f"{name} reaches bytes {offset}{low:+} to {offset}{high:+} of a buffer of {length}."
        )


def _itemsize(name: str, interface: dict[str, Any]) -> int:
    if interface.get("typestr") is None:  # which NumPy would read as float64
        raise BufferError(f"{name} has no element type (typestr).")
    try:
        return int(numpy.dtype(interface["typestr"]).itemsize)
    except (KeyError, TypeError, ValueError, SyntaxError) as error:  # as NumPy reads "07,f4"
        raise BufferError(f"{name} has no element type (typestr): {error}") from error


def _compact(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = []
    for size in reversed(shape):
        strides.append(itemsize)
        itemsize *= size
    return tuple(reversed(strides))
