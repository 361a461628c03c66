# SPDX-License-Identifier: Apache-2.0
"""Conversions between lengths of segments, ranges, offsets, ids and weights."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base import length_kernels
from bridge.caffe2.operators.base.checks import INT32, INTS, require, require_all
from bridge.caffe2.operators.base.cpu_kernels import takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import counts_of, segment_ids


def require_lengths(lengths: Tensor) -> None:
    """Raise EnforceNotMet unless lengths have one dimension."""
    require(lengths.dim() == 1, "the lengths have one dimension", lengths)


@operator("LengthsToSegmentIds", types=INT32, gradient="undefined", effects=("values",))
def lengths_to_segment_ids(lengths: Tensor, *, out: Out = None) -> Tensor:
    """[2, 0, 1] -> [0, 0, 2]."""
    require_lengths(lengths)
    if takes_kernels(lengths, dtype=lengths.dtype):
        segments = lengths.shape[0]
        n = length_kernels.sum_of_lengths(lengths, segments)
        made = lengths.new_empty(n) if out is None or out.shape != (n,) else out
        return length_kernels.ids_by_lengths(made, lengths, segments, n, False)
    return segment_ids(lengths).int()


@operator("LengthsToRanges", types=INT32)
def lengths_to_ranges(lengths: Tensor, *, out: Out = None) -> Tensor:
    """[2, 0, 1] -> [[0, 2], [2, 0], [2, 1]], offsets and lengths."""
    require_lengths(lengths)
    offsets = lengths.cumsum(0, dtype=torch.int32) - lengths
    return torch.stack([offsets, lengths], 1, out=out)


@operator("LengthsToOffsets", types=INT32)
def lengths_to_offsets(
    lengths: Tensor, *, include_last_offset: bool = False, out: Out = None
) -> Tensor:
    """[2, 0, 1] -> [0, 2, 2], followed by 3 with `include_last_offset`."""
    require_lengths(lengths)
    ends = lengths.cumsum(0, dtype=torch.int32)
    if include_last_offset:
        return torch.cat([ends.new_zeros(1), ends], out=out)
    return torch.sub(ends, lengths, out=out)


@operator("LengthsToWeights", types=INTS, effects=("values",))
def lengths_to_weights(lengths: Tensor, *, power: float = 0.5) -> Tensor:
    """1 / length ** `power` for each row of each segment."""
    require_lengths(lengths)
    weights = (1 / lengths.double() ** power).float()
    return weights.index_select(0, segment_ids(lengths))


@operator("LengthsToShape", types=INT32, gradient="undefined")
def lengths_to_shape(lengths: Tensor, *, out: Out = None) -> Tensor:
    """[3, 3] -> [2, 3]: the sizes of a matrix whose rows have these lengths."""
    require_lengths(lengths)
    require(lengths.numel() > 0, "there is at least one length")
    require_all(lengths == lengths[:1], "all lengths are the same", lengths)
    return torch.cat([lengths.new_full((1,), lengths.shape[0]), lengths[:1]], out=out)


def _counts(ids: Tensor, data: Tensor | None, out: Out = None) -> Tensor:
    """Return the number of rows of each segment; `data` have a row per segment."""
    by_kernel = takes_kernels(ids, dtype=ids.dtype)
    wide = ids.dtype is torch.int64
    if by_kernel:
        count = length_kernels.last_id(ids, ids.numel(), wide, False) + 1
    else:
        count = int(ids[-1]) + 1 if ids.numel() else 0
    n = count
    if data is not None:
        require(data.dim() >= 1, "input 1 has at least one dimension", data)
        n = data.shape[0]
        require(count <= n, f"input 1 has a row for each of {count} segments", data)
    if by_kernel:
        made = ids.new_empty(n, dtype=torch.int32) if out is None or out.shape != (n,) else out
        return length_kernels.counts_of_ids(made, ids, ids.numel(), n, wide)
    if ids.numel():
        fits = int(ids[0]) >= 0 and not bool((ids.diff() < 0).any())
        require(fits, "segment ids are sorted, and not negative", ids.tolist())
    return counts_of(ids, n).int()


@operator(
    "SegmentIdsToLengths",
    types={"ids": INTS, "data": None},
    rearranges=(),
    gradient="undefined",
    effects=("values",),
)
def segment_ids_to_lengths(ids: Tensor, data: Tensor | None = None, *, out: Out = None) -> Tensor:
    """[0, 0, 2] -> [2, 0, 1]. `data`, if given, have one row per segment."""
    fits = ids.dim() == 1 or (ids.dim() == 2 and 1 in ids.shape)
    require(fits, "the segment ids have one dimension", ids)
    return _counts(ids.reshape(-1), data, out)


@operator(
    "SegmentIdsToRanges",
    types={"ids": INTS, "data": None},
    rearranges=(),
    gradient="undefined",
    effects=("values",),
)
def segment_ids_to_ranges(ids: Tensor, data: Tensor | None = None) -> Tensor:
    """[0, 0, 2] -> [[0, 2], [2, 0], [2, 1]], offsets and lengths.

    As in Caffe2, segments after the last id have the offset 0.
    """
    require(ids.dim() == 1, "the segment ids have one dimension", ids)
    counts = _counts(ids, data)
    offsets = counts.cumsum(0, dtype=torch.int32) - counts
    if ids.numel():
        offsets[int(ids[-1]) + 1 :] = 0
    return torch.stack([offsets, counts], 1)


@operator("LengthsSplit", types=INT32, gradient="unimplemented")
def lengths_split(lengths: Tensor, parts: Tensor | None = None, *, n_split: int = 0) -> Tensor:
    """Split each length into `n_split` parts, an argument or input 1, the greater ones first."""
    require_lengths(lengths)
    if parts is not None:
        require(parts.dim() == 1 and parts.numel() == 1, "input 1 has one element", parts)
        n_split = int(parts[0])
    require(n_split > 0, "n_split is positive", n_split)
    whole = torch.div(lengths, n_split, rounding_mode="floor")
    rest = torch.remainder(lengths, n_split)
    numbers = torch.arange(n_split, device=lengths.device)
    return (whole[:, None] + (numbers < rest[:, None])).int().reshape(-1)
