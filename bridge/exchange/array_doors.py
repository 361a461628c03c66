# SPDX-License-Identifier: Apache-2.0
"""The doors that lead through a NumPy array: ``__array_interface__`` and ``__array__``."""

from __future__ import annotations

from typing import Any

import numpy

from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.array_interface import check_interface, interface_of
from bridge.exchange.fresh_memory import FreshMemoryError, as_copy, must_prove, was_copied
from bridge.exchange.library_fit import refuse_nulls
from bridge.exchange.numpy import import_array
from bridge.exchange.refusal import reason_of


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
    interface = interface_of(x, "__array_interface__")
    described = x
    if interface is not None:
        check_interface(x, interface)
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
