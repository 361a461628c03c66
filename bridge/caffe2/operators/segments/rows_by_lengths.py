# SPDX-License-Identifier: Apache-2.0
"""Operators that repeat, select, pad or merge rows by the lengths of segments."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, INTS, NUMBERS, require, require_all
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import (
    check_lengths,
    counts_of,
    ended_before,
    positions_in_segments,
    row_indices,
    rows_at,
    segment_ids,
)
from bridge.caffe2.operators.search import search_kernels
from bridge.caffe2.operators.search.top_k import sorted_down
from bridge.caffe2.operators.segments.lengths import require_lengths


@operator(
    "LengthsTile",
    types={"data": None, "lengths": INT32},
    gradient="LengthsSum g0 i1 > 0",
    effects=("values",),
)
def lengths_tile(data: Tensor, lengths: Tensor) -> Tensor:
    """Repeat each row of the data as often as its length says."""
    require_lengths(lengths)
    require(data.dim() >= 1, "the data have at least one dimension", data)
    require(lengths.shape[0] == data.shape[0], "there is one length per row", lengths, data)
    return data.index_select(0, segment_ids(lengths))


@operator(
    "LengthsGather",
    types={"items": None, "lengths": INT32, "indices": INTS},
    gradient="undefined",
    effects=("values",),
)
def lengths_gather(items: Tensor, lengths: Tensor, indices: Tensor) -> Tensor:
    """The segments of `items` at the indices, concatenated."""
    require(items.dim() >= 1, "the items have at least one dimension", items)
    fits = lengths.dim() == 1 and indices.dim() == 1
    require(fits, "lengths and indices have one dimension", lengths, indices)
    places = row_indices(indices, lengths.shape[0])
    check_lengths(lengths, items.shape[0])
    starts = lengths.cumsum(0, dtype=torch.int64) - lengths
    chosen = lengths[places]
    ids = segment_ids(chosen)
    return rows_at(items, starts[places][ids] + positions_in_segments(chosen, ids))


@operator("LengthsPad", types={"data": NUMBERS, "lengths": INT32}, gradient="none")
def lengths_pad(
    data: Tensor, lengths: Tensor, *, padding_value: float = -1.0, target_length: int = -1
) -> Tensor:
    """Pad each segment with `padding_value` to `target_length` rows."""
    require_lengths(lengths)
    require(target_length >= 1, "target_length is at least 1", target_length)
    require(data.dim() >= 1, "the data have at least one dimension", data)
    ids = segment_ids(lengths, data.shape[0])
    require_all(lengths <= target_length, f"no length is greater than {target_length}", lengths)
    places = ids * target_length + positions_in_segments(lengths, ids)
    value = padding_value if data.is_floating_point() else int(padding_value)
    padding = data.new_full((lengths.shape[0] * target_length, *data.shape[1:]), value)
    return padding.index_copy(0, places, data)


@operator("LengthsTopK", types={"lengths": INT32}, gradient="$Gradient i1 o1 g0 > 0")
def lengths_top_k(x: Tensor, lengths: Tensor, *, k: int = -1) -> tuple[Tensor, Tensor]:
    """The `k` largest elements of each segment, and their indices; 0 and -1 if there are fewer."""
    require_lengths(lengths)
    require(k >= 1, "k is at least 1", k)
    require(x.dim() == 1, "X has one dimension", x)
    count, n = lengths.shape[0], x.shape[0]
    if takes_kernels(x) and takes_kernels(lengths, dtype=torch.int32):
        made, places = x.new_empty(count, k), x.new_empty((count, k), dtype=torch.int64)
        given = places, lengths, count, n, k
        return run_kernel(search_kernels.top_k_of_segments, x, made, *given), places.int()
    check_lengths(lengths)
    ends = lengths.cumsum(0, dtype=torch.int64)
    require_all(ends[-1:] <= n, f"the lengths add up to at most {n}, the elements of X", lengths)
    ids = ended_before(ends, n)  # `count` for elements after the last segment
    # Within each segment the greatest first: sorted by value, then by segment.
    order = sorted_down(x, 0)[1]
    numbers = torch.arange(n, device=x.device)
    order = order[torch.sort(ids[order] * n + numbers).indices]
    starts = torch.cat([ends - lengths, ends[-1:]]) if count else ends.new_zeros(1)
    ranks = numbers - starts[ids]
    last = count * k  # for those that are not among the k largest
    places = torch.where((ranks < k) & (ids < count), ids * k + ranks, last)
    values = x.new_zeros(last + 1).scatter(0, places, x[order])
    indices = places.new_full((last + 1,), -1).scatter(0, places, order - starts[ids])
    return values[:last].view(count, k), indices[:last].view(count, k).int()


@operator("MergeIdLists", types=None, inputs="2n", gradient="none", effects=("values",))
def merge_id_lists(*xs: Tensor) -> tuple[Tensor, Tensor]:
    """Merge lists of ids, whose lengths are inputs 0, 2, ...: each id once, sorted."""
    n, dtype = xs[0].shape[0] if xs[0].dim() else 0, xs[1].dtype
    require(dtype in (torch.int32, torch.int64), "ids are int32 or int64", dtype)
    segments = []
    for lengths, values in zip(xs[::2], xs[1::2], strict=True):
        require_lengths(lengths)
        require(lengths.dtype == torch.int32, "lengths are int32", lengths.dtype)
        require(lengths.shape[0] == n, f"all inputs have {n} lengths", lengths)
        require(values.dim() == 1, "the ids have one dimension", values)
        require(values.dtype == dtype, f"all ids are of {dtype}", values.dtype)
        segments.append(segment_ids(lengths, values.shape[0]))
    both = torch.stack([torch.cat(segments), torch.cat(xs[1::2]).long()], 1)
    merged = torch.unique(both, dim=0)
    return counts_of(merged[:, 0], n).int(), merged[:, 1].to(dtype)
