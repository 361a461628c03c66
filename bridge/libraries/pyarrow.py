# SPDX-License-Identifier: Apache-2.0
"""pyarrow's classes, which have more than one protocol: Arrow's own says the most."""

from __future__ import annotations

from math import prod
from typing import Any

from bridge.exchange.arrow_import import import_pyarrow
from bridge.exchange.library_fit import fit, plain_array
from bridge.exchange.registry import register


def _export(tensor: Any) -> Any:
    """Return a ``pyarrow.Array``; of more than one dimension a ``FixedShapeTensorArray``.

    Booleans are copied: Arrow packs them into bits.
    """
    import pyarrow

    tensor = fit(tensor, row_major=True)
    array = plain_array(tensor, "Arrow")
    if array.ndim == 0 or array.dtype.kind == "c":
        raise BufferError(
            f"An Arrow array has real numbers and at least one dimension, and this is of "
            f"{tensor.dtype()} with {array.ndim}. Use at.view_as_real(x) or reshape(1)."
        )
    values = array.reshape(-1)
    kind = pyarrow.from_numpy_dtype(array.dtype)
    if array.dtype.kind == "b":
        flat = pyarrow.array(values)
    else:
        flat = pyarrow.Array.from_buffers(
            kind, values.size, [None, pyarrow.py_buffer(values.view("uint8"))], null_count=0
        )
    if array.ndim == 1:
        return flat
    inner = array.shape[1:]
    rows = pyarrow.Array.from_buffers(
        pyarrow.list_(kind, prod(inner)), len(array), [None], null_count=0, children=[flat]
    )
    return pyarrow.ExtensionArray.from_storage(pyarrow.fixed_shape_tensor(kind, inner), rows)


register(
    "pyarrow",
    types=(
        "pyarrow.Array",
        "pyarrow.ChunkedArray",
        "pyarrow.RecordBatch",
        "pyarrow.Table",
        "pyarrow.Tensor",
        "pyarrow.*",
    ),
    importer=import_pyarrow,
    exporter=_export,
    import_takes_copy=True,
)
