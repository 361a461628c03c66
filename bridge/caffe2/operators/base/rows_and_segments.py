# SPDX-License-Identifier: Apache-2.0
"""Rows selected by indices, and segments of rows given by their lengths."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.c10.errors import EnforceIndexError, EnforceNotMet
from bridge.caffe2.operators.base import length_kernels
from bridge.caffe2.operators.base.checks import assert_traced, has_values, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels

_INTEGERS = (torch.int32, torch.int64)


def along_rows(values: Tensor, x: Tensor) -> Tensor:
    """Return a view of `values`, one per row of `x`, that broadcasts with `x`: (n, 1, ...)."""
    return values.reshape(-1, *[1] * (x.dim() - 1))


def weighted(rows: Tensor, weights: Tensor) -> Tensor:
    """Return the rows times their weights. Raises EnforceNotMet: as `flat_weights`."""
    return rows * along_rows(flat_weights(weights, rows.shape[0]), rows)


def flat_weights(weights: Tensor, n: int) -> Tensor:
    """Return weights in one dimension. Raises EnforceNotMet: there is not one for each row."""
    fits = weights.dim() > 0 and weights.shape[0] == weights.numel() == n
    require(fits, f"there is one weight for each of {n} rows", weights)
    return weights.reshape(-1)


def row_indices(indices: Tensor, n: int) -> Tensor:
    """Return `indices` as int64 in one dimension.

    Raises EnforceNotMet, also an IndexError: an index is not in [0, n).
    """
    flat = indices.reshape(-1).long()
    check_rows(flat, n)
    return flat


def check_rows(indices: Tensor, n: int) -> None:
    """Raise EnforceNotMet, also an IndexError, unless all indices, if known, are in [0, n)."""
    if takes_kernels(indices, dtype=indices.dtype) and indices.dtype in _INTEGERS:
        wide = indices.dtype is torch.int64
        run_kernel(length_kernels.in_range, indices, indices.numel(), n, wide)
        return
    if not indices.numel():
        return
    if not has_values(indices):
        assert_traced(indices, "indices are in range", lambda x: (x >= 0) & (x < n))
        return
    if int(indices.min()) < 0 or int(indices.max()) >= n:
        given = sorted(set(indices.reshape(-1).tolist()))
        raise EnforceIndexError(
            f"An index of {given} is out of range for {n} rows.", condition="0 <= idx && idx < N"
        )


def select_rows(data: Tensor, indices: Tensor) -> Tensor:
    """Return a copy of the rows of `data` at `indices`.

    Raises EnforceNotMet, also an IndexError: an index is out of range.
    """
    check_rows(indices, data.size(0))
    return rows_at(data, indices.reshape(-1))


def rows_at(data: Tensor, places: Tensor) -> Tensor:
    """Return a copy of the rows of `data` at `places`, which are in range."""
    if data.dtype == torch.uint16:  # torch computes with its bits, not with the type
        return data.view(torch.int16).index_select(0, places).view(torch.uint16)
    return data.index_select(0, places)


def copied_rows(data: Tensor, places: Tensor, rows: Tensor) -> Tensor:
    """Return a copy of `data` with `rows` at `places`, which are in range."""
    if data.dtype == torch.uint16:
        bits = data.view(torch.int16).index_copy(0, places, rows.view(torch.int16))
        return bits.view(torch.uint16)
    return data.index_copy(0, places, rows)


def check_lengths(lengths: Tensor, n_rows: int | None = None) -> None:
    """Raise EnforceNotMet if a length is negative, or the lengths do not add up to `n_rows`.

    Lengths whose values are not known, as in a trace, are not checked; see `assert_traced`.
    """
    if takes_kernels(lengths, dtype=torch.int32):
        n = -1 if n_rows is None else n_rows
        run_kernel(length_kernels.checked, lengths, lengths.numel(), n)
        return
    if has_values(lengths):
        run_kernel(_checked, lengths, n_rows)
        return
    assert_traced(lengths, "lengths are not negative", lambda x: x >= 0)
    if n_rows is not None:
        what = "the sum of lengths is the number of rows"
        assert_traced(lengths, what, lambda x: x.sum() == n_rows)


def _checked(lengths: Tensor, n_rows: int | None) -> Tensor:
    if bool((lengths < 0).any()):
        raise EnforceNotMet(f"Lengths must not be negative: {lengths.tolist()}.")
    total = int(lengths.sum())
    if n_rows is not None and total != n_rows:
        raise EnforceNotMet(
            f"The lengths add up to {total}, but there are {n_rows} rows.",
            condition="the sum of lengths is the number of rows",
        )
    return lengths


def segment_ids(lengths: Tensor, n_rows: int | None = None) -> Tensor:
    """Return the segment of each row, int64: [2, 0, 1] -> [0, 0, 2].

    With `n_rows`, the sum of the lengths, no values are read but for the checks.
    Raises EnforceNotMet: as `check_lengths`.
    """
    if takes_kernels(lengths, dtype=torch.int32):
        segments = lengths.numel()
        n = n_rows
        if n is None:
            n = run_kernel(length_kernels.sum_of_lengths, lengths, segments)
        made = lengths.new_empty(n, dtype=torch.int64)
        return run_kernel(length_kernels.ids_by_lengths, made, lengths, segments, n, True)
    check_lengths(lengths, n_rows)
    if n_rows is None:
        numbers = torch.arange(lengths.shape[0], device=lengths.device)
        return torch.repeat_interleave(numbers, lengths.long())
    return ended_before(lengths.cumsum(0, dtype=torch.int64), n_rows)


def ended_before(ends: Tensor, n_rows: int) -> Tensor:
    """Return for each row how many of the segments end at it or before it, int64.

    `ends`, from 0 to `n_rows`, are the rows that follow the segments: [2, 2, 3], 4 -> [0, 0, 2, 3].
    """
    marks = ends.new_zeros(n_rows + 1).index_add(0, ends, torch.ones_like(ends))
    return marks[:n_rows].cumsum(0)


def counts_of(ids: Tensor, n: int) -> Tensor:
    """Return how often each of the ids from 0 to n - 1 occurs, int64: [0, 0, 2], 3 -> [2, 0, 1]."""
    return ids.new_zeros(n, dtype=torch.int64).index_add(
        0, ids, torch.ones_like(ids, dtype=torch.int64)
    )


def sum_segments(
    data: Tensor,
    indices: Tensor | None,
    lengths: Tensor,
    mode: str = "sum",
    weights: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the sums of segments of rows of `data` at `indices`; also ``mean``, or ``max``.

    `indices`: None for all rows in turn. `weights`, one per index, is for sums. The reduction of no
    rows is 0.
    Raises EnforceNotMet: as `check_lengths`; also an IndexError: an index is out of range.
    """
    if lengths.dtype != torch.int32:
        lengths = lengths.int()
    sizes = (lengths.shape[0], *data.shape[1:])
    integers = (lengths,) if indices is None else (lengths, indices)
    if (
        mode != "max"
        and takes_kernels(data, *(() if weights is None else (weights,)))
        and (out is None or takes_kernels(out))
        and all(one.is_cpu and one.is_contiguous() for one in integers)
    ):
        y = data.new_empty(sizes) if out is None else out
        n, wide = data.shape[0], False
        if indices is not None:
            n, wide = indices.shape[0], indices.dtype is torch.int64
        counts = (data.shape[0], math.prod(sizes[1:]), n, lengths.shape[0])
        given = (data, indices, lengths, weights, *counts, wide, mode == "mean")
        return run_kernel(length_kernels.sum_segments, y, *given)
    n = data.shape[0]
    if indices is None:
        indices = torch.arange(n, device=data.device, dtype=torch.int64)
    check_lengths(lengths, indices.shape[0])
    check_rows(indices, n)
    table = data.reshape(n, math.prod(data.shape[1:]))
    starts = lengths.cumsum(0, dtype=indices.dtype) - lengths
    found = torch.nn.functional.embedding_bag(
        indices, table, starts, mode=mode, per_sample_weights=weights
    )
    return found.view(sizes)


def positions_in_segments(lengths: Tensor, segments: Tensor) -> Tensor:
    """Return the position of each row in its segment, int64: [2, 0, 1] -> [0, 1, 0].

    `segments` is `segment_ids(lengths)`.
    """
    starts = lengths.cumsum(0, dtype=torch.int64) - lengths
    places = torch.arange(segments.shape[0], device=segments.device)
    return places - starts[segments]
