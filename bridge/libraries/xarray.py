# SPDX-License-Identifier: Apache-2.0
"""xarray, whose arrays hold an array of NumPy, Dask or another library."""

from __future__ import annotations

from typing import Any

from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    return x.data


register("xarray", types=("xarray.DataArray", "xarray.Variable"), importer=_import)
