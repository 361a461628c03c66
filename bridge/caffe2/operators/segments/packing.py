# SPDX-License-Identifier: Apache-2.0
"""Segments of different lengths packed into one tensor, and unpacked."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base import length_kernels
from bridge.caffe2.operators.base.checks import (
    FLOATS,
    INT32,
    INTS,
    NUMBERS,
    has_values,
    require,
    require_all,
)
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import positions_in_segments, segment_ids
from bridge.caffe2.operators.segments.lengths import require_lengths

PACKED = {"lengths": INTS, "data": (c10.float32, *INTS, c10.string)}


@operator(
    "PackSegments",
    types=PACKED,
    gradient="UnpackSegments i0 g0 > 1",
    outputs="1-2",
    rearranges=(0,),
)
def pack_segments(
    lengths: Tensor,
    data: Tensor,
    *,
    max_length: int = -1,
    pad_minf: bool = False,
    return_presence_mask: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """(rows, ...) -> (segments, longest or `max_length`, ...), padded with 0.

    With `pad_minf` padded with -inf. Output 1, with `return_presence_mask`: where there are rows.
    """
    require_lengths(lengths)
    require(data.dim() >= 1, "the data have at least one dimension", data)
    n, width = lengths.shape[0], max_length
    by_kernel = takes_kernels(data) and takes_kernels(lengths, dtype=torch.int32)
    ids = lengths if by_kernel else segment_ids(lengths, data.shape[0])
    if width == -1 and by_kernel:
        width = run_kernel(length_kernels.longest, lengths, n)
    elif width == -1:
        width = int(lengths.max()) if n else 0
        if not has_values(lengths):  # the first call imports sympy, for a second
            torch._check(width >= 0)  # type: ignore[no-untyped-call]
    else:
        require(width >= 0, "max_length is not negative", width)
    padding = float("-inf") if pad_minf and data.dtype == torch.float32 else 0
    if by_kernel:
        room = data.new_empty((n, width, *data.shape[1:]))
        sizes = n, data.shape[0], width, math.prod(data.shape[1:])
        result = run_kernel(length_kernels.packed, room, data, lengths, *sizes, padding)
    else:
        within = positions_in_segments(lengths, ids)
        last = n * width  # for rows that have no place
        places = torch.where(within < width, ids * width + within, last)
        packed = data.new_full((last + 1, *data.shape[1:]), padding).index_copy(0, places, data)
        result = packed[:last].view(n, width, *data.shape[1:])
    if not return_presence_mask:
        return result, None
    return result, torch.arange(width, device=lengths.device) < lengths[:, None]


@operator("UnpackSegments", types=PACKED, gradient="PackSegments i0 g0 > 1", effects=("values",))
def unpack_segments(
    lengths: Tensor, data: Tensor, *, max_length: int = -1, out: Out = None
) -> Tensor:
    """(segments, longest, ...) -> (rows, ...): as many of each as its length."""
    require_lengths(lengths)
    require(data.dim() >= 2, "the data have two dimensions or more", data)
    require(lengths.shape[0] == data.shape[0], "there is one length per segment", lengths, data)
    width = data.shape[1]
    require(max_length in (-1, width), f"max_length is {max_length} as the sizes say", data)
    if takes_kernels(data) and takes_kernels(lengths, dtype=torch.int32):
        n = lengths.shape[0]
        if length_kernels.longest(lengths, n) <= width:
            rows = length_kernels.sum_of_lengths(lengths, n)
            sizes = rows, *data.shape[2:]
            room = data.new_empty(sizes) if out is None or out.shape != sizes else out
            given = n, rows, width, math.prod(data.shape[2:])
            return length_kernels.unpacked(room, data, lengths, *given)
    fits = max_length != -1 or not bool((lengths > width).any())
    require(fits, f"no length is greater than {width}", lengths.tolist())
    ids = segment_ids(lengths)
    within = positions_in_segments(lengths, ids)
    return data.flatten(0, 1)[(ids * width + within)[within < width]]


@operator(
    "ReversePackedSegs",
    types={"data": (*FLOATS, *INTS, c10.bool), "lengths": INTS},
    gradient="ReversePackedSegs g0 i1 > 0",
)
def reverse_packed_segs(data: Tensor, lengths: Tensor) -> Tensor:
    """(longest, segments, n) with the rows of each segment reversed."""
    fits = data.dim() == 3 and lengths.dim() == 1
    require(fits, "data have three dimensions, lengths one", data, lengths)
    longest, count, n = data.shape
    require(lengths.shape[0] == count, "there is one length per segment", lengths, data)
    require_all(lengths <= longest, f"no length is greater than {longest}", lengths)
    rows = torch.arange(longest, device=data.device)[:, None]
    places = torch.where(rows < lengths, lengths - 1 - rows, rows)
    return data.gather(0, places[:, :, None].expand(longest, count, n).long())


SEQUENCES = {"values": NUMBERS, "lengths": INT32}


@operator(
    "PackRNNSequence", types=SEQUENCES, gradient="UnpackRNNSequence g0 i1 > 0", effects=("values",)
)
def pack_rnn_sequence(values: Tensor, lengths: Tensor) -> Tensor:
    """(values: (sum of lengths, D...), lengths: (N)) -> (longest, N, D...), padded with 0.

    Follows PackRNNSequenceOpBase, caffe2/operators/pack_rnn_sequence_op.h, PyTorch 1.8.1.
    """
    require_lengths(lengths)
    require(values.dim() > 1, "values have a dimension of features", values)
    ids = segment_ids(lengths, values.shape[0])
    count = lengths.shape[0]
    longest = int(lengths.max()) if count else 0
    places = positions_in_segments(lengths, ids) * count + ids
    packed = values.new_zeros((longest * count, *values.shape[1:])).index_copy(0, places, values)
    return packed.view(longest, count, *values.shape[1:])


@operator(
    "UnpackRNNSequence", types=SEQUENCES, gradient="PackRNNSequence g0 i1 > 0", effects=("values",)
)
def unpack_rnn_sequence(values: Tensor, lengths: Tensor) -> Tensor:
    """(values: (longest, N, D...), lengths: (N)) -> (sum of lengths, D...)."""
    require_lengths(lengths)
    require(values.dim() > 2, "values have a dimension of features", values)
    longest, count = values.shape[:2]
    fits = lengths.shape[0] == count and (not count or int(lengths.max()) <= longest)
    require(fits, "there is one length per sequence, at most the longest", lengths.tolist(), values)
    ids = segment_ids(lengths)
    return values.flatten(0, 1).index_select(0, positions_in_segments(lengths, ids) * count + ids)
