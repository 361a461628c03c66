# SPDX-License-Identifier: Apache-2.0
"""Searching, sorting, indexing and set functions of the array API standard.

NaNs are distinct in sets, as the standard has it.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import torch

from bridge.at.array_api.dtypes import SCALARS
from bridge.at.array_api.running import agreed, axes_of, on_memory
from bridge.at.tensor import Tensor

__all__ = [
    "argmax", "argmin", "argsort", "isin", "nonzero", "searchsorted", "sort", "take",
    "take_along_axis", "unique_all", "unique_counts", "unique_inverse", "unique_values", "where",
]  # fmt: skip


def _position(x: torch.Tensor, axis: int | None, keepdims: bool, find: Any) -> torch.Tensor:
    if axis is not None:
        found: torch.Tensor = find(x, axis, keepdim=keepdims)
        return found
    found = find(x.flatten())
    return found.reshape((1,) * x.ndim) if keepdims else found


@on_memory
def argmax(x: torch.Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> torch.Tensor:
    """Return the index of the greatest element along `axis`; of all, in row-major order."""
    return _position(x, axis, keepdims, torch.argmax)


@on_memory
def argmin(x: torch.Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> torch.Tensor:
    """Return the index of the least element along `axis`; of all, in row-major order."""
    return _position(x, axis, keepdims, torch.argmin)


@on_memory
def sort(
    x: torch.Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> torch.Tensor:
    """Return the elements in order along `axis`."""
    return torch.sort(x, dim=axis, descending=descending, stable=stable).values


@on_memory
def argsort(
    x: torch.Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> torch.Tensor:
    """Return the indices that put the elements in order along `axis`."""
    return torch.argsort(x, dim=axis, descending=descending, stable=stable)


@on_memory
def nonzero(x: torch.Tensor, /) -> tuple[torch.Tensor, ...]:
    """Return the indices of the elements that are not zero, an array for each dimension.

    Raises ValueError: the array has no dimensions.
    """
    if x.ndim == 0:
        raise ValueError("An array without dimensions has no indices.")
    return torch.nonzero(x, as_tuple=True)


@on_memory
def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> torch.Tensor:
    """Return whether each element of `x1` is among those of `x2`; whether not, if `invert`."""
    x1, x2 = agreed(x1, x2)
    return torch.isin(x1, x2, invert=invert)


@on_memory
def searchsorted(
    x1: torch.Tensor, x2: Any, /, *, side: str = "left", sorter: torch.Tensor | None = None
) -> torch.Tensor:
    """Return where the elements of `x2` belong in `x1`, which is sorted, or is by `sorter`."""
    x1, x2 = agreed(x1, x2)
    return torch.searchsorted(
        x1, x2, side=side, sorter=None if sorter is None else sorter.to(torch.int64)
    )


@on_memory
def where(condition: torch.Tensor, x1: Any, x2: Any, /) -> torch.Tensor:
    """Return the elements of `x1` where `condition` is true, else of `x2`."""
    if not (isinstance(x1, SCALARS) and isinstance(x2, SCALARS)):
        x1, x2 = agreed(x1, x2)
    return torch.where(condition, x1, x2)


def _counted_from_start(indices: torch.Tensor, size: int) -> torch.Tensor:
    """Return indices without negative ones; torch wraps none here."""
    wide = indices.to(torch.int64)
    return torch.where(wide < 0, wide + size, wide)


@on_memory
def take(x: torch.Tensor, indices: torch.Tensor, /, *, axis: int | None = None) -> torch.Tensor:
    """Return the elements at `indices` along `axis`, which one dimension may leave away.

    Raises ValueError: no `axis`, and the array is not one-dimensional.
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"axis= is needed, since the array has {x.ndim} dimensions.")
        axis = 0
    (axis,) = axes_of(x, axis)
    return torch.index_select(x, axis, _counted_from_start(indices, x.shape[axis]))


@on_memory
def take_along_axis(x: torch.Tensor, indices: torch.Tensor, /, *, axis: int = -1) -> torch.Tensor:
    """Return the elements at `indices`, which broadcast with the array, along `axis`."""
    (axis,) = axes_of(x, axis)
    return torch.take_along_dim(x, _counted_from_start(indices, x.shape[axis]), dim=axis)


unique_all_result = namedtuple("unique_all_result", "values indices inverse_indices counts")
unique_counts_result = namedtuple("unique_counts_result", "values counts")
unique_inverse_result = namedtuple("unique_inverse_result", "values inverse_indices")


def _sorted_order(flat: torch.Tensor) -> torch.Tensor:
    """Return the indices that bring equal elements together, the first of them first."""
    if not flat.is_complex():
        return torch.argsort(flat, stable=True)
    order = torch.argsort(flat.imag, stable=True)
    return order[torch.argsort(flat.real[order], stable=True)]


@on_memory
def unique_all(x: torch.Tensor, /) -> unique_all_result:
    """Return the distinct elements, where each is first, where each element is, and how many."""
    flat = x.flatten()
    order = _sorted_order(flat)
    ordered = flat[order]
    starts = torch.ones_like(order, dtype=torch.bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    firsts = torch.nonzero(starts).flatten()
    inverse = torch.empty_like(order)
    inverse[order] = torch.cumsum(starts, 0) - 1
    counts = torch.diff(firsts, append=firsts.new_full((1,), flat.numel()))
    return unique_all_result(ordered[firsts], order[firsts], inverse.reshape(x.shape), counts)


def unique_counts(x: Tensor, /) -> unique_counts_result:
    """Return the distinct elements, and how many there are of each."""
    found = unique_all(x)
    return unique_counts_result(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> unique_inverse_result:
    """Return the distinct elements, and for each element its place among them."""
    found = unique_all(x)
    return unique_inverse_result(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """Return the distinct elements, sorted."""
    values: Tensor = unique_all(x).values
    return values
