# SPDX-License-Identifier: Apache-2.0
"""xarray, whose arrays hold an array of NumPy, Dask or another library."""

from __future__ import annotations

from operator import attrgetter

from bridge.exchange.registry import register

register("xarray", types=("xarray.DataArray", "xarray.Variable"), importer=attrgetter("data"))
