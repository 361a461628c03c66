# SPDX-License-Identifier: Apache-2.0
"""Set functions of the array API standard. NaNs are distinct, as the standard has it."""

from __future__ import annotations

from collections import namedtuple

import torch

from bridge.at.array_api.running import on_memory
from bridge.at.tensor import Tensor

__all__ = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]

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
