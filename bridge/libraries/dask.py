# SPDX-License-Identifier: Apache-2.0
"""Dask, whose arrays are computed into new memory at each call."""

from __future__ import annotations

from operator import methodcaller

from bridge.exchange.registry import register

register("dask", types=("dask.array.Array",), importer=methodcaller("compute"))
