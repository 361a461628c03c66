# SPDX-License-Identifier: Apache-2.0
"""Rows of tensors: those that indices name, and the segments that lengths make of them."""

from __future__ import annotations

from bridge.c10.errors import EnforceIndexError, EnforceNotMet
from bridge.caffe2.operators.base.lazy_torch import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "along_rows",
    "chosen_rows",
    "places_in_segments",
    "rows_of",
    "segments_of_lengths",
]


def along_rows(values: Tensor, x: Tensor) -> Tensor:
    """View one value for each row of `x` so that it broadcasts on `x`: (n) -> (n, 1, ...)."""
    return values.reshape(-1, *[1] * (x.dim() - 1))


def rows_of(indices: Tensor, n: int) -> Tensor:
    """Return indices of rows as int64, in one dimension. Raises EnforceNotMet: one has no row."""
    flat = indices.reshape(-1).long()
    if bool(((flat < 0) | (flat >= n)).any()):
        raise EnforceIndexError(
            f"An index of {sorted(set(flat.tolist()))} is out of range for {n} rows.",
            condition="0 <= idx && idx < N",
        )
    return flat


def chosen_rows(data: Tensor, indices: Tensor) -> Tensor:
    """Return the rows of `data` that `indices` name, one after another, as a new tensor.

    Raises EnforceNotMet: there is no such row.
    """
    return data.index_select(0, rows_of(indices, data.size(0)))


def segments_of_lengths(lengths: Tensor, n_rows: int | None = None) -> Tensor:
    """Return the segment of each row, int64: [2, 0, 1] -> [0, 0, 2].

    Raises EnforceNotMet: a length is negative, or they do not add up to `n_rows`.
    """
    if bool((lengths < 0).any()):
        raise EnforceNotMet(f"Lengths are not negative, as one of {lengths.tolist()}.")
    total = int(lengths.sum())
    if n_rows is not None and total != n_rows:
        raise EnforceNotMet(
            f"The lengths add up to {total}, and there are {n_rows} rows.",
            condition="the sum of lengths is the number of rows",
        )
    found: Tensor = torch.repeat_interleave(torch.arange(len(lengths)), lengths.long())
    return found


def places_in_segments(lengths: Tensor, segments: Tensor) -> Tensor:
    """Return the place of each row in its segment, int64: [2, 0, 1] -> [0, 1, 0].

    `segments` is what `segments_of_lengths` gives for the lengths.
    """
    starts = lengths.cumsum(0, dtype=torch.int64) - lengths
    found: Tensor = torch.arange(len(segments)) - starts[segments]
    return found
