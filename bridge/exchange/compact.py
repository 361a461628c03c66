# SPDX-License-Identifier: Apache-2.0
"""Tensors for frameworks that hold row-major memory only."""

from __future__ import annotations

from typing import Any

from bridge.exchange.ingest import ingest

__all__ = ["compact"]


def compact(x: Any, copy: bool | None) -> Any:
    """An at.Tensor of `x` that is row-major: shared if it is so already, else a copy.

    Raises BufferError under ``copy=False`` where a copy would be needed.
    """
    from bridge.at.tensor import Tensor

    tensor = Tensor._wrap(ingest(x, None, False if copy is False else None))
    if tensor.is_contiguous():
        return tensor
    if copy is False:
        raise BufferError(
            f"The memory has strides {tensor.strides().vec()}, and the framework holds "
            "row-major memory only. Allow a copy with copy=None."
        )
    return tensor.contiguous()
