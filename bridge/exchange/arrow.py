# SPDX-License-Identifier: Apache-2.0
"""Arrow, whose arrays are immutable: columns of one type, in one piece or in chunks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.buffers import plain_buffer
from bridge.exchange.producers import by_dlpack

__all__ = ["bring"]


def bring(x: Any, copy: bool | None) -> TensorImpl | None:
    """The TensorImpl of a ``pyarrow.Array`` or ``pyarrow.Tensor``.

    Arrays are read-only, and tensors where they say so. Raises BufferError: nulls, types that
    are not plain numbers (booleans are bits), chunks.
    """
    if isinstance(x, pa.Array):
        if x.null_count:
            raise BufferError(
                f"The Arrow array has {x.null_count} nulls, and memory of numbers has none. Use "
                "fill_null(value) or drop_null()."
            )
        if pa.types.is_boolean(x.type):
            raise BufferError(
                "Arrow packs booleans into bits. Use cast(pyarrow.uint8()), or "
                "to_numpy(zero_copy_only=False), which copy."
            )
        return by_dlpack(x, readonly=True)
    if isinstance(x, pa.Tensor):
        impl = plain_buffer(x)
        return by_dlpack(x, readonly=not x.is_mutable) if impl is None else impl
    if isinstance(x, (pa.ChunkedArray, pa.RecordBatch, pa.Table)):
        how = "combine_chunks()" if isinstance(x, pa.ChunkedArray) else "a column"
        raise BufferError(f"A {type(x).__name__} is not one block of memory. Take {how}.")
    return None
