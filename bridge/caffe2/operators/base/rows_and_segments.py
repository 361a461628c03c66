# SPDX-License-Identifier: Apache-2.0
"""Rows selected by indices, and segments of rows given by their lengths."""

from __future__ import annotations

from bridge.c10.errors import EnforceIndexError, EnforceNotMet
from bridge.caffe2.operators.base.lazy_torch import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "along_rows",
    "select_rows",
    "positions_in_segments",
    "check_lengths",
    "row_indices",
    "segment_ids",
]


def along_rows(values: Tensor, x: Tensor) -> Tensor:
    """Return a view of `values`, one per row of `x`, that broadcasts with `x`: (n, 1, ...)."""
    return values.reshape(-1, *[1] * (x.dim() - 1))


def row_indices(indices: Tensor, n: int) -> Tensor:
    """Return `indices` as int64 in one dimension.

    Raises EnforceNotMet, also an IndexError: an index is not in [0, n).
    """
    flat = indices.reshape(-1).long()
    if bool(((flat < 0) | (flat >= n)).any()):
        raise EnforceIndexError(
            f"An index of {sorted(set(flat.tolist()))} is out of range for {n} rows.",
            condition="0 <= idx && idx < N",
        )
    return flat


def select_rows(data: Tensor, indices: Tensor) -> Tensor:
    """Return a copy of the rows of `data` at `indices`.

    Raises EnforceNotMet, also an IndexError: an index is out of range.
    """
    return data.index_select(0, row_indices(indices, data.size(0)))


def check_lengths(lengths: Tensor, n_rows: int | None = None) -> None:
    """Raise EnforceNotMet if a length is negative, or the lengths do not add up to `n_rows`."""
    if bool((lengths < 0).any()):
        raise EnforceNotMet(f"Lengths must not be negative: {lengths.tolist()}.")
    total = int(lengths.sum())
    if n_rows is not None and total != n_rows:
        raise EnforceNotMet(
            f"The lengths add up to {total}, but there are {n_rows} rows.",
            condition="the sum of lengths is the number of rows",
        )


def segment_ids(lengths: Tensor, n_rows: int | None = None) -> Tensor:
    """Return the segment of each row, int64: [2, 0, 1] -> [0, 0, 2].

    Raises EnforceNotMet: as `check_lengths`.
    """
    check_lengths(lengths, n_rows)
    found: Tensor = torch.repeat_interleave(torch.arange(len(lengths)), lengths.long())
    return found


def positions_in_segments(lengths: Tensor, segments: Tensor) -> Tensor:
    """Return the position of each row in its segment, int64: [2, 0, 1] -> [0, 1, 0].

    `segments` is `segment_ids(lengths)`.
    """
    starts = lengths.cumsum(0, dtype=torch.int64) - lengths
    found: Tensor = torch.arange(len(segments)) - starts[segments]
    return found
