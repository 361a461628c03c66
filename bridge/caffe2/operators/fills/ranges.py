# SPDX-License-Identifier: Apache-2.0
"""Fills with consecutive numbers."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, TargetDevice, operator
from bridge.caffe2.operators.base import length_kernels
from bridge.caffe2.operators.base.checks import INT32, NUMBERS, require
from bridge.caffe2.operators.base.cpu_kernels import takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import positions_in_segments, segment_ids
from bridge.caffe2.operators.fills.fill_sizes import FILL, FillSizes


@operator("RangeFill", **FILL)
def range_fill(
    x: Tensor | None = None, *, sizes: FillSizes, device: TargetDevice = "cpu", out: Out = None
) -> Tensor:
    """Fill with 0, 1, 2, ... as float32."""
    made = sizes.of(x)
    n = math.prod(made)
    if out is not None and list(out.shape) == list(made):
        torch.arange(n, out=out.view(-1))
        return out
    return torch.arange(n, dtype=torch.float32, device=device).view(made)


@operator("LengthsRangeFill", gradient="none", types=INT32, effects=("values",))
def lengths_range_fill(lengths: Tensor, *, out: Out = None) -> Tensor:
    """Concatenate 0 .. n-1 for each n of the lengths: [2, 3] -> [0, 1, 0, 1, 2]."""
    require(lengths.dim() == 1, "the lengths have one dimension", lengths)
    if takes_kernels(lengths, dtype=lengths.dtype):
        segments = lengths.shape[0]
        n = length_kernels.sum_of_lengths(lengths, segments)
        made = lengths.new_empty(n) if out is None or out.shape != (n,) else out
        return length_kernels.places_by_lengths(made, lengths, segments, n)
    return positions_in_segments(lengths, segment_ids(lengths)).to(torch.int32)


@operator("Range", gradient="none", types=NUMBERS, sized_by=("first", "second", "third"))
def range_of(first: Tensor, second: Tensor | None = None, third: Tensor | None = None) -> Tensor:
    """start, start + step, ... before stop. Inputs: stop; start, stop; or start, stop, step."""
    given = [x for x in (first, second, third) if x is not None]
    for x in given:
        require(x.numel() == 1, "the inputs have one element each", x)
    numbers = [x.item() for x in given]
    start, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    require(step != 0, "Step size cannot be 0.")
    quotient = (stop - start) / step
    n = max(math.ceil(quotient), 0)
    if not first.dtype.is_floating_point:
        n = max(int(-((start - stop) // step)), 0)
        if (stop - start) % step and step < 0:
            # Caffe2 divides towards zero, and rounds up only for positive steps.
            n = max(int(quotient), 0)
    return start + step * torch.arange(n, dtype=first.dtype, device=first.device)
