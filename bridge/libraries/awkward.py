# SPDX-License-Identifier: Apache-2.0
"""Awkward Array, whose arrays are immutable, and regular only in part."""

from __future__ import annotations

from typing import Any

from bridge.exchange.library_fit import plain_array, refuse_nulls
from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    """Return the NumPy array of a regular array without missing values; read-only."""
    import awkward

    try:
        array = awkward.to_numpy(x, allow_missing=False)
    except ValueError as error:
        nulls = sum(
            int(awkward.sum(awkward.is_none(x, axis=axis), axis=None)) for axis in range(x.ndim)
        )
        refuse_nulls("Awkward array", nulls, "ak.fill_none(x, value) or ak.drop_none(x)")
        reason = str(error).partition(" (in ")[0]
        raise BufferError(
            f"The Awkward array is not one block of memory: {reason}. Use ak.flatten(x)."
        ) from error
    array = array.view()
    array.flags.writeable = False
    return array


def _export(tensor: Any) -> Any:
    import awkward

    array = plain_array(tensor, "Awkward")
    if array.ndim == 0:
        raise BufferError("An Awkward array has at least one dimension. Use reshape(1).")
    return awkward.from_numpy(array, regulararray=array.ndim > 1)


register("awkward", types=("awkward.Array",), importer=_import, exporter=_export)
