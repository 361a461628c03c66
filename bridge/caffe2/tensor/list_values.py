# SPDX-License-Identifier: Apache-2.0
"""The values of lists for new tensors, with NumPy's types and checks."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.element_view import as_element
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.c10.type_meta import TypeMeta


def array_of(values: Any, dtype: TypeMeta | None, caller: str) -> Any:
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


def items_of(values: Any, dtype: TypeMeta | None, caller: str) -> list[Any]:
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
