# SPDX-License-Identifier: Apache-2.0
"""Arrow, whose arrays are immutable columns of one type, in one piece or in chunks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.buffer_import import import_plain_buffer
from bridge.exchange.dlpack_producers import import_by_dlpack
from bridge.exchange.registry import register

__all__ = ["import_"]


def import_(x: Any, copy: bool | None) -> TensorImpl | None:
    """Return the TensorImpl of a ``pyarrow.Array`` or ``pyarrow.Tensor``.

    Arrays are read-only, tensors if they are not mutable. Raises BufferError: nulls, elements that
    are not plain numbers (booleans are packed into bits), chunks.
    """
    if isinstance(x, pa.Array):
        if x.null_count:
            raise BufferError(
                f"The Arrow array has {x.null_count} nulls, which plain memory cannot hold. Use "
                "fill_null(value) or drop_null()."
            )
        if pa.types.is_boolean(x.type):
            raise BufferError(
                "Arrow packs booleans into bits. Use cast(pyarrow.uint8()), or "
                "to_numpy(zero_copy_only=False), which copy."
            )
        return import_by_dlpack(x, readonly=True)
    if isinstance(x, pa.Tensor):
        impl = import_plain_buffer(x)
        return import_by_dlpack(x, readonly=not x.is_mutable) if impl is None else impl
    if isinstance(x, (pa.ChunkedArray, pa.RecordBatch, pa.Table)):
        how = "combine_chunks()" if isinstance(x, pa.ChunkedArray) else "a column"
        raise BufferError(f"A {type(x).__name__} is not one block of memory. Take {how}.")
    return None


register("pyarrow", types=("pyarrow.*",), importer=import_, takes_copy=True)
