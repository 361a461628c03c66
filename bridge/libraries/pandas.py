# SPDX-License-Identifier: Apache-2.0
"""pandas, whose columns are NumPy arrays, masked arrays, or Arrow's."""

from __future__ import annotations

from typing import Any

import numpy

from bridge.exchange.library_fit import plain_array, refuse_nulls
from bridge.exchange.registry import register

# The kinds of NumPy's types of numbers.
NUMBERS = "biufc"


def _import(x: Any) -> Any:
    """Return the NumPy or Arrow array of a Series, Index, DataFrame or extension array."""
    import pandas

    if isinstance(x, pandas.DataFrame):
        return _of_frame(x)
    dtype = x.dtype
    if isinstance(dtype, numpy.dtype):
        array = x.to_numpy()
    else:
        _refuse_nulls(x, int(x.isna().sum()))
        if isinstance(dtype, pandas.ArrowDtype) and dtype.kind != "b":
            return _of_arrow(x)
        plain = getattr(dtype, "numpy_dtype", None)
        if plain is not None and plain.kind in NUMBERS:
            return x.to_numpy(dtype=plain)
        array = _readonly(x.to_numpy())
    if array.dtype.kind not in NUMBERS:
        _refuse(x, dtype)
    return _readonly(array) if isinstance(x, pandas.Index) else array


def _of_frame(x: Any) -> Any:
    dtypes = list(x.dtypes)
    if not all(isinstance(dtype, numpy.dtype) for dtype in dtypes):
        _refuse_nulls(x, int(x.isna().sum().sum()))
    array = x.to_numpy()
    if array.dtype.kind in NUMBERS:
        return array
    plain = [getattr(dtype, "numpy_dtype", dtype) for dtype in dtypes]
    if any(getattr(dtype, "kind", "O") not in NUMBERS for dtype in plain):
        names = ", ".join(dict.fromkeys(map(str, dtypes)))
        raise BufferError(
            f"The columns of the pandas DataFrame, of {names}, have no common type of numbers. "
            "Convert one column, or those of numbers: x.select_dtypes('number')."
        )
    return x.to_numpy(dtype=numpy.result_type(*plain))


def _of_arrow(x: Any) -> Any:
    import pandas

    array = x if isinstance(x, pandas.api.extensions.ExtensionArray) else x.array
    arrow = array.__arrow_array__()
    chunks = getattr(arrow, "num_chunks", 1)
    if chunks > 1:
        raise BufferError(
            f"The pandas {type(x).__name__} has {chunks} chunks, so it is not one block of memory. "
            "Join them first: pyarrow.chunked_array(x).combine_chunks()."
        )
    return arrow.chunk(0) if hasattr(arrow, "num_chunks") and chunks else arrow


def _refuse(x: Any, dtype: Any) -> None:
    what = f"The pandas {type(x).__name__} has elements of {dtype}"
    if getattr(dtype, "kind", "O") in "mM":
        raise BufferError(f"{what}: times, not numbers. Take the integers: astype('int64').")
    raise BufferError(
        f"{what}, which are not numbers. Convert it with astype() first; bridge.asarray takes "
        "columns of strings."
    )


def _readonly(array: Any) -> Any:
    array = array.view()
    array.flags.writeable = False
    return array


def _refuse_nulls(x: Any, nulls: int) -> None:
    refuse_nulls(f"pandas {type(x).__name__}", nulls, "fillna(value) or dropna()")


def _export(tensor: Any) -> Any:
    import pandas

    array = plain_array(tensor, "pandas")
    if array.ndim == 1:
        return pandas.Series(array, copy=False)
    if array.ndim == 2:
        return pandas.DataFrame(array, copy=False)
    raise BufferError(
        f"pandas has one dimension (Series) or two (DataFrame), and the tensor has {array.ndim}. "
        "Use reshape() or flatten()."
    )


register(
    "pandas",
    types=(
        "pandas.Series",
        "pandas.Index",
        "pandas.DataFrame",
        "pandas.api.extensions.ExtensionArray",
    ),
    importer=_import,
    exporter=_export,
)
