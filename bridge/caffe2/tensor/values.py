# SPDX-License-Identifier: Apache-2.0
"""Values from lists into tensors, in NumPy's types and with NumPy's checks."""

from __future__ import annotations

from bridge.c10.element_view import as_element
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.c10.type_meta import TypeMeta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["array_of", "items_of"]


def array_of(values: Any, dtype: TypeMeta | None, caller: str) -> Any:
    """A NumPy array of `values`, of type `dtype` or the one NumPy gives them.

    Raises EnforceNotMet, also a TypeError or ValueError: they are no numbers, ragged,
    or do not fit the type.
    """
    import numpy

    try:
        if dtype is None:
            return numpy.ascontiguousarray(numpy.array(values))
        plain = numpy.array(values)
        if plain.dtype.kind not in "biufc" and plain.dtype.kind != "V":
            raise TypeError(f"values of {plain.dtype} are no numbers")
        with numpy.errstate(over="ignore", invalid="ignore"):
            return numpy.ascontiguousarray(
                numpy.array(values, dtype=dtype.numpy) if plain.size else plain.astype(dtype.numpy)
            )
    except OverflowError as error:
        raise EnforceValueError(f"A value does not fit {dtype}: {error}", caller) from error
    except ValueError as error:
        raise EnforceValueError(f"The values make no array: {error}", caller) from error
    except TypeError as error:
        raise EnforceTypeError(f"The values make no array: {error}", caller) from error


def items_of(values: Any, dtype: TypeMeta | None, caller: str) -> list[Any]:
    """A list of the elements of a non-POD type; strings where `dtype` is None."""
    wanted = TypeMeta.Make("string") if dtype is None else dtype
    if isinstance(values, (str, bytes)):
        raise EnforceTypeError("Values are a sequence, not one string.", caller)
    try:
        listed = list(values)
    except TypeError as error:
        raise EnforceTypeError(
            f"Values are a sequence, not {type(values).__name__}.", caller
        ) from error
    return [as_element(one, wanted, caller) for one in listed]
