# SPDX-License-Identifier: Apache-2.0
"""Taichi, whose arrays and fields give copies of their memory only."""

from __future__ import annotations

from typing import Any

from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    return x.to_numpy()


register(
    "taichi",
    types=("taichi.Ndarray", "taichi.ScalarField", "taichi.MatrixField"),
    importer=_import,
)
