# SPDX-License-Identifier: Apache-2.0
"""Polars, whose series are immutable columns, possibly with nulls, in one or more chunks."""

from __future__ import annotations

from typing import Any

from bridge.exchange.library_fit import plain_array, refuse_nulls
from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    """Return the NumPy array of a Series or DataFrame: a view where Polars can give one."""
    nulls = x.null_count()
    if not isinstance(nulls, int):
        nulls = sum(nulls.row(0)) if x.width else 0
    elif nulls == 0 and x.dtype.is_nested() and hasattr(x.dtype, "size"):
        nulls = x.explode().null_count()
    refuse_nulls(f"Polars {type(x).__name__}", nulls, "fill_null(value) or drop_nulls()")
    return x.to_numpy()


def _export(tensor: Any) -> Any:
    import polars

    array = plain_array(tensor, "Polars")
    if array.ndim == 0 or array.dtype.kind == "c":
        raise BufferError(
            f"A Polars series has real numbers and at least one dimension, and this is of "
            f"{tensor.dtype()} with {array.ndim}. Use view_as_real() or reshape(1)."
        )
    series = polars.Series(array)
    inner = getattr(series.dtype, "inner", series.dtype)
    while hasattr(inner, "inner"):
        inner = inner.inner
    if series.to_numpy().dtype != array.dtype:
        raise BufferError(f"Polars makes {inner} of {tensor.dtype()}. Convert it first.")
    return series


register(
    "polars",
    types=("polars.Series", "polars.DataFrame"),
    importer=_import,
    exporter=_export,
)
