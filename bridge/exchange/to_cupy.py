# SPDX-License-Identifier: Apache-2.0
"""Handing tensors to CuPy."""

from __future__ import annotations

from typing import Any

import cupy

from bridge.exchange.ingest import ingest
from bridge.exchange.transfer import to_device

__all__ = ["give"]


def give(x: Any, copy: bool | None) -> Any:
    """A ``cupy.ndarray`` of the memory of `x`; see bridge.to_cupy."""
    from bridge.at.tensor import Tensor
    from bridge.c10.device import Device

    if isinstance(x, cupy.ndarray):
        return x.copy() if copy is True else x
    impl = ingest(x, None, False if copy is False else None)
    if impl.device().type.name not in ("CUDA", "CUDAManaged"):
        impl = to_device(impl, Device("cuda"), copy)
    made = cupy.from_dlpack(Tensor._wrap(impl))
    return made.copy() if copy is True else made
