# SPDX-License-Identifier: Apache-2.0
"""pandas, whose columns are NumPy arrays, masked arrays, or Arrow's."""

from __future__ import annotations

from typing import Any

import numpy

from bridge.exchange.library_fit import plain_array, refuse_nulls
from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    """Return the NumPy or Arrow array of a Series, Index, DataFrame or extension array."""
    import pandas

    if isinstance(x, pandas.DataFrame):
        if not all(isinstance(dtype, numpy.dtype) for dtype in x.dtypes):
            _refuse_nulls(x, int(x.isna().sum().sum()))
        return x.to_numpy()
    dtype = x.dtype
    if isinstance(dtype, numpy.dtype):
        return _readonly(x.to_numpy()) if isinstance(x, pandas.Index) else x.to_numpy()
    _refuse_nulls(x, int(x.isna().sum()))
    if isinstance(dtype, pandas.ArrowDtype) and dtype.kind in "iuf":
        array = x if isinstance(x, pandas.api.extensions.ExtensionArray) else x.array
        arrow = array.__arrow_array__()
        return arrow.chunk(0) if getattr(arrow, "num_chunks", 0) == 1 else arrow
    plain = getattr(dtype, "numpy_dtype", None)
    return _readonly(x.to_numpy()) if plain is None else x.to_numpy(dtype=plain)


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
