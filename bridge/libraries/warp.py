# SPDX-License-Identifier: Apache-2.0
"""Warp, whose arrays of at most four dimensions are imported through their own DLPack."""

from __future__ import annotations

from typing import Any

from bridge.exchange.library_fit import fit
from bridge.exchange.registry import register


def _export(tensor: Any) -> Any:
    import warp

    warp.init()
    if tensor.ndim == 0:
        raise BufferError("A Warp array has at least one dimension. Use reshape(1).")
    return warp.from_dlpack(fit(tensor, writable=True))


register("warp", types=("warp.array",), exporter=_export)
