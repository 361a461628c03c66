# SPDX-License-Identifier: Apache-2.0
"""Polars, whose series and frames are imported through Arrow's C interface."""

from __future__ import annotations

from typing import Any

from bridge.exchange.library_fit import plain_array
from bridge.exchange.registry import register


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


register("polars", types=("polars.Series", "polars.DataFrame"), exporter=_export)
