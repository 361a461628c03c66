# SPDX-License-Identifier: Apache-2.0
"""RowWiseCounter: counts of how often rows occur, decaying over iterations."""

from __future__ import annotations

import math

import numpy as np

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.torch_operator import INT64, INTS

__all__ = ["RowWiseCounter"]


@register_operator("RowWiseCounter")
class RowWiseCounter(FloatOperator):
    """(last iterations, counts, rows, iteration) -> last iterations, counts, in place.

    Inputs: int64 (R), double (R), indices of rows, one int64. The count of a row halves in
    `counter_halflife` (-1: no counting) iterations, and grows by one when the row occurs.
    Follows RowWiseCounterOp, caffe2/sgd/rowwise_counter.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        last, counts = self.x(0, INT64), self.x(1, (c10.float64,))
        self.enforce(last.numel() == counts.numel(), "there is one count per row", last, counts)
        now = self.x(3, INT64)
        self.enforce(now.numel() == 1, "the iteration has one element", now)
        given = self.x(2, INTS)
        self.enforce_range("rows", given, last.numel())
        half = self.GetSingleArgument("counter_halflife", -1)
        if half <= 0:
            return
        at, made = last.numpy().reshape(-1).copy(), counts.numpy().reshape(-1).copy()
        step, rate = int(now.view(-1)[0]), math.log(2) / half
        for row in given.view(-1).tolist():
            made[row] = 1 + np.exp(-max(0, step - int(at[row])) * rate) * made[row]
            at[row] = max(step, int(at[row]))
        self.out(0, last.shape, c10.int64).numpy()[...] = at.reshape(last.shape)
        self.out(1, counts.shape, c10.float64).numpy()[...] = made.reshape(counts.shape)
