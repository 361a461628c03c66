# SPDX-License-Identifier: Apache-2.0
"""Fills with consecutive numbers."""

from __future__ import annotations

import math

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.fill_operator import FillOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import positions_in_segments, segment_ids
from bridge.caffe2.operators.base.torch_operator import INT32, INTS, NUMBERS, TorchOperator, enforce

__all__: list[str] = []


@register_operator("RangeFill")
class RangeFill(FillOperator):
    """Fill with 0, 1, 2, ... as float32."""

    def RunOnDevice(self) -> None:
        out = self.out(0, self.sizes(), c10.float32)
        torch.arange(out.numel(), out=out.view(-1))


@register_operator("LengthsRangeFill")
class LengthsRangeFill(TorchOperator):
    """Concatenate 0 .. n-1 for each n of input 0: [2, 3] -> [0, 1, 0, 1, 2]."""

    def RunOnDevice(self) -> None:
        lengths = self.x(0, INT32)
        enforce(lengths.dim() == 1, "The lengths must have one dimension.")
        places = positions_in_segments(lengths, segment_ids(lengths))
        self.put(0, places.to(torch.int32))


@register_operator("Range")
class Range(TorchOperator):
    """start, start + step, ... before stop. Inputs: stop; start, stop; or start, stop, step."""

    def RunOnDevice(self) -> None:
        dtype = self.Input(0).dtype()
        numbers = []
        for i in range(self.InputSize()):
            x = self.x(i, (dtype,) if i else NUMBERS)
            enforce(x.numel() == 1, f"Input {i} must have one element.")
            numbers.append(x.item())
        start, stop, step = 0, numbers[0], 1
        if len(numbers) > 1:
            start, stop, step = numbers[0], numbers[1], ([*numbers, 1])[2]
        enforce(step != 0, "Step size cannot be 0.")
        quotient = (stop - start) / step
        n = max(math.ceil(quotient), 0)
        if dtype in INTS:
            n = max(-((start - stop) // step), 0)
            if (stop - start) % step and step < 0:
                # Caffe2 divides towards zero, and rounds up only for positive steps.
                n = max(int(quotient), 0)
        self.put(0, start + step * torch.arange(n, dtype=dtype.torch))
