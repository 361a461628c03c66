# SPDX-License-Identifier: Apache-2.0
"""The doors that lead through a NumPy array: ``__array_interface__`` and ``__array__``."""

from __future__ import annotations

from typing import Any

import numpy

from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.array_interface import check_interface, interface_of
from bridge.exchange.fresh_memory import as_copy, is_same, must_prove
from bridge.exchange.numpy import import_array

__all__ = ["import_array_interface", "import_array_method"]


def import_array_interface(x: Any, copy: bool | None) -> TensorImpl:
    """Return the TensorImpl of the memory that ``__array_interface__`` describes.

    Shared; copied if each read describes new memory (see `fresh_memory`). Raises BufferError: the
    description is invalid, or a copy is needed and `copy` is False.
    """
    impl = import_array(_described(x), None if copy is True else copy)
    if must_prove(copy) and not is_same(impl, import_array(_described(x), None)):
        return as_copy(impl, x, copy)
    return impl


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
        if interface.get("data") is not None:  # else it is the buffer of `x`
            described = _Description(interface, x)
    try:
        return numpy.asarray(described)
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.__array_interface__ describes no array: {error}"
        ) from error


def import_array_method(x: Any, copy: bool | None) -> TensorImpl:
    """Return the TensorImpl of the array that ``x.__array__()`` returns.

    Shared; copied if `x` makes a new array at each call. Raises BufferError: it returns none, or a
    copy is needed and `copy` is False.
    """
    impl = import_array(_array(x), None if copy is True else copy)
    if must_prove(copy):
        reason = _why_copied(x, impl)
        if reason is not None:
            return as_copy(impl, x, copy, reason)
    return impl


def _array(x: Any) -> numpy.ndarray[Any, Any]:
    try:
        return numpy.asarray(x)
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.__array__ does not return an array: {error}"
        ) from error


def _why_copied(x: Any, impl: TensorImpl) -> str | None:
    """Return why the array that `impl` was imported from is a copy; None if it is not."""
    again = None
    if _takes_copy(x):
        try:
            again = numpy.asarray(x, copy=False)
        except ValueError as error:
            return f"{type(x).__name__}.__array__ copies: {error}"
    return None if is_same(impl, import_array(_array(x) if again is None else again, None)) else ""


def _takes_copy(x: Any) -> bool:
    """Return whether ``x.__array__`` can be asked not to copy, as NumPy 2 does."""
    if numpy.lib.NumpyVersion(numpy.__version__) < "2.0.0":
        return False
    from inspect import Parameter, signature

    try:
        parameters = signature(type(x).__array__).parameters
    except (TypeError, ValueError):  # a method that is compiled
        return False
    return "copy" in parameters or any(
        one.kind is Parameter.VAR_KEYWORD for one in parameters.values()
    )
