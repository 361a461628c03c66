# SPDX-License-Identifier: Apache-2.0
"""tvm-ffi, whose tensors are imported through their own exchange table, and are writable."""

from __future__ import annotations

from typing import Any

from bridge.exchange.library_fit import fit
from bridge.exchange.registry import register


def _export(tensor: Any) -> Any:
    import tvm_ffi

    return tvm_ffi.from_dlpack(fit(tensor, writable=True))


register("tvm_ffi", types=("tvm_ffi.Tensor",), exporter=_export)
