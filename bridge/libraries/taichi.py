# SPDX-License-Identifier: Apache-2.0
"""Taichi, whose arrays and fields give copies of their memory only."""

from __future__ import annotations

from operator import methodcaller

from bridge.exchange.registry import register

register(
    "taichi",
    types=("taichi.Ndarray", "taichi.ScalarField", "taichi.MatrixField"),
    importer=methodcaller("to_numpy"),
)
