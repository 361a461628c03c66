# SPDX-License-Identifier: Apache-2.0
"""Padding rows before and after segments."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base import length_kernels
from bridge.caffe2.operators.base.checks import FLOATS, INT32, INTS, require, require_all
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import (
    check_lengths,
    positions_in_segments,
    segment_ids,
)

SEGMENTS = {"data": (*FLOATS, *INTS, c10.bool), "lengths": INT32, "before": "data", "after": "data"}
PADDED = {"data": SEGMENTS["data"], "lengths": INT32}


def _widths(before: int, after: int) -> tuple[int, int]:
    """Return the numbers of rows before and after each segment; by default the same."""
    require(before >= 0, "padding_width is not negative", before)
    return before, before if after < 0 else after


def _lengths_of(data: Tensor, lengths: Tensor | None) -> Tensor:
    """Return the lengths of the segments, by default one of all rows."""
    require(data.dim() >= 1, "the data have at least one dimension", data)
    if lengths is None:
        return torch.full((1,), data.shape[0], dtype=torch.int32, device=data.device)
    lengths = lengths.reshape(-1)
    check_lengths(lengths, data.shape[0])
    return lengths


def _unchanged(data: Tensor, lengths: Tensor | None, outputs: int) -> tuple[Tensor, Tensor | None]:
    require(outputs < 2 or lengths is not None, "there are lengths for the second output")
    return data, lengths


def _row(row: Tensor, data: Tensor) -> Tensor:
    """Return a row of padding: (1, ...)."""
    require(row.numel() == math.prod(data.shape[1:]), "padding has the sizes of a row", row, data)
    return row.reshape(1, *data.shape[1:])


def _padding_gradient(maker: GradientMaker) -> None:
    inputs = [maker.GO(0)]
    if len(maker.op.input) > 1:
        inputs.append(maker.O(1))
    back = "AddPadding" if maker.op.type == "RemovePadding" else "RemovePadding"
    maker.add(back, inputs, [maker.GI(0)])
    if maker.op.type == "AddPadding" and len(maker.op.input) > 2:
        paddings = [maker.GI(i) for i in range(2, len(maker.op.input))]
        maker.add("GatherPadding", inputs, paddings)


@operator("AddPadding", types=SEGMENTS, outputs="1-2", gradient=_padding_gradient)
def add_padding(
    data: Tensor,
    lengths: Tensor | None = None,
    before: Tensor | None = None,
    after: Tensor | None = None,
    *,
    padding_width: int = 1,
    end_padding_width: int = -1,
    outputs: OutputCount = 2,
    out: Out = None,
) -> tuple[Tensor, Tensor | None]:
    """Segments with rows before (input 2, by default 0) and after (input 3, by default the same).

    There are `padding_width` rows before each segment, and `end_padding_width`, by default as many,
    after it. Output 1: the new lengths.
    """
    head, tail = _widths(padding_width, end_padding_width)
    if not head and not tail:
        return _unchanged(data, lengths, outputs)
    first = None if before is None else _row(before, data)
    last = first if after is None else _row(after, data)
    return _padded(data, lengths, first, last, head, tail, out)


def _padded(
    data: Tensor,
    lengths: Tensor | None,
    first: Tensor | None,
    last: Tensor | None,
    head: int,
    tail: int,
    out: Out,
) -> tuple[Tensor, Tensor]:
    """Return segments with `head` rows more before each, and `tail` after it; fewer, if negative.

    first, last: the rows to add, None for zeros. Also return the new lengths.
    """
    lengths = _lengths_of(data, lengths)
    n, count = data.shape[0], lengths.shape[0]
    total = n + count * (head + tail)
    rows = [data, *(one for one in (first, last) if one is not None)]
    plain = total >= 0 and takes_kernels(*rows, dtype=data.dtype)
    if plain and takes_kernels(lengths, dtype=torch.int32):
        made, longer = out if isinstance(out, tuple) else (out, None)
        made = data.new_empty((total, *data.shape[1:])) if made is None else made
        longer = torch.empty_like(lengths) if longer is None else longer
        sizes = count, n, math.prod(data.shape[1:]), data.element_size(), head, tail
        given = longer, data, lengths, first, last, *sizes
        return run_kernel(length_kernels.padded, made, *given), longer
    longer = lengths + (head + tail)
    require_all(longer >= 0, f"no segment is shorter than its padding, {-head - tail}", lengths)
    ids = segment_ids(longer, total)
    within = positions_in_segments(longer, ids)
    places = (lengths.cumsum(0, dtype=torch.int64) - lengths)[ids] + within - head
    if head > 0 or tail > 0:
        zeros = data.new_zeros((1, *data.shape[1:]))
        rows = [data, *(zeros if one is None else one for one in (first, last))]
        places = torch.where(within < head, n, places)
        places = torch.where(within >= (longer - tail)[ids], n + 1, places)
    return torch.cat(rows).index_select(0, places), longer


@operator("RemovePadding", types=PADDED, outputs="1-2", gradient=_padding_gradient)
def remove_padding(
    data: Tensor,
    lengths: Tensor | None = None,
    *,
    padding_width: int = 1,
    end_padding_width: int = -1,
    outputs: OutputCount = 2,
    out: Out = None,
) -> tuple[Tensor, Tensor | None]:
    """Segments without the rows before and after, see AddPadding. Output 1: the new lengths."""
    head, tail = _widths(padding_width, end_padding_width)
    if not head and not tail:
        return _unchanged(data, lengths, outputs)
    return _padded(data, lengths, None, None, -head, -tail, out)


@operator("GatherPadding", types=PADDED, outputs="1-2")
def gather_padding(
    data: Tensor,
    lengths: Tensor,
    *,
    padding_width: int = 1,
    end_padding_width: int = -1,
    outputs: OutputCount = 2,
) -> tuple[Tensor, ...]:
    """The sums of the rows before and after segments, or of both if there is one output."""
    head, tail = _widths(padding_width, end_padding_width)
    if not head and not tail:
        return (data.new_zeros((), dtype=torch.int64),) * outputs
    lengths = _lengths_of(data, lengths)
    require(data.dtype != torch.bool, "the data are numbers", data.dtype)
    check_lengths(lengths - max(head, tail))  # no segment is shorter than its padding
    ends = lengths.cumsum(0, dtype=torch.int64)
    sums = []
    for begins, n in ((ends - lengths, head), (ends - tail, tail)):
        rows = (begins[:, None] + torch.arange(n, device=data.device)).reshape(-1)
        sums.append(data.index_select(0, rows).sum(0, dtype=data.dtype))
    return (sums[0], sums[1]) if outputs == 2 else (sums[0] + sums[1],)


@operator(
    "PadEmptySamples",
    types={"lengths": INT32, "features": None},
    inputs="1-*",
    rearranges="same",
    effects=("values",),
)
def pad_empty_samples(
    lengths: Tensor, *features: Tensor, outputs: OutputCount
) -> tuple[Tensor, ...]:
    """Lengths of 0 become 1, and each feature input gets a row of zeros there."""
    require(lengths.dim() == 1, "the lengths have one dimension", lengths)
    require(outputs == 1 + len(features), "there is one output per input", outputs)
    check_lengths(lengths)
    n = int(lengths.sum())
    padded = lengths.clamp(min=1)
    ids = segment_ids(padded)
    rows = (lengths[ids] > 0).nonzero().view(-1)
    found = [padded]
    for feature in features:
        fits = feature.dim() >= 1 and feature.shape[0] == n
        require(fits, f"features have {n} rows, the sum of the lengths", feature)
        blank = feature.new_zeros((ids.shape[0], *feature.shape[1:]))
        found.append(blank.index_copy(0, rows, feature))
    return tuple(found)
