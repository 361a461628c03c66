# SPDX-License-Identifier: Apache-2.0
"""Whether two outcomes of one operation, on plain tensors and on at.Tensors, are the same."""

from __future__ import annotations

from typing import Any

import torch

from bridge import at

# Operations whose values are those of unwritten memory, or differ from call to call.
NO_VALUES = ("empty", "resize", "as_strided_scatter_unsafe")


def difference(theirs: Any, ours: Any, values: bool) -> str | None:
    """Return how two results differ; None: they do not. `values`: whether these are compared."""
    if isinstance(ours, at.Tensor):
        ours = ours.to_torch()
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, torch.Tensor):
            return f"{type(ours).__name__} for a tensor"
        return _of_tensors(theirs.detach(), ours.detach(), values)
    if isinstance(theirs, (tuple, list)):
        if not isinstance(ours, (tuple, list)) or len(ours) != len(theirs):
            return f"{type(ours).__name__} for {len(theirs)} results"
        found = [difference(a, b, values) for a, b in zip(theirs, ours, strict=True)]
        return next((one for one in found if one), None)
    if isinstance(theirs, (bool, int, float, complex)) and values:
        same = theirs == ours or (theirs != theirs and ours != ours)
        return None if same else f"{ours} for {theirs}"
    return None


def _of_tensors(theirs: torch.Tensor, ours: torch.Tensor, values: bool) -> str | None:
    if theirs.dtype != ours.dtype:
        return f"{ours.dtype} for {theirs.dtype}"
    if theirs.layout != ours.layout:
        return f"{ours.layout} for {theirs.layout}"
    if theirs.is_nested or theirs.is_quantized or theirs.device.type == "meta":
        return None
    if theirs.shape != ours.shape:
        return f"sizes {tuple(ours.shape)} for {tuple(theirs.shape)}"
    if not values:
        return None
    a, b = (one.to_dense() if one.layout != torch.strided else one for one in (theirs, ours))
    if a.dtype.is_floating_point or a.dtype.is_complex:
        wide = torch.complex128 if a.dtype.is_complex else torch.float64
        same = torch.allclose(a.to(wide), b.to(wide), 1e-4, 1e-5, equal_nan=True)
    else:
        same = torch.equal(a, b)
    return None if same else "other values"
