# SPDX-License-Identifier: Apache-2.0
"""MLX, whose arrays are imported through their own buffer protocol or DLPack."""

from __future__ import annotations

from typing import Any

from bridge.exchange.library_fit import fit, refuse_types
from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    """Return `x`: its buffer is tried first, and bfloat16, which has none, goes by DLPack."""
    return x


def _export(tensor: Any) -> Any:
    import mlx.core

    # it would make float32 and complex64 of them
    refuse_types(tensor, "MLX", "float64", "complex128")
    return mlx.core.from_dlpack(fit(tensor, writable=True))


register("mlx", types=("mlx.core.array",), importer=_import, exporter=_export, prefers_buffer=True)
