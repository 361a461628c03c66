# SPDX-License-Identifier: Apache-2.0
"""RowWiseCounter: counts of how often rows occur, decaying over iterations."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INT64, INTS, require, require_range
from bridge.caffe2.operators.base.cpu_kernels import takes_kernels
from bridge.caffe2.operators.training import step_kernels
from bridge.caffe2.operators.training.row_rounds import stepped, writable


@operator(
    "RowWiseCounter",
    inplace="0>0!,1>1!",
    types={
        "prev_iter": INT64,
        "update_counter": (c10.float64,),
        "indices": INTS,
        "iteration": INT64,
    },
    outputs=2,
    gradient="undefined",
    effects=("errors",),
)
def row_wise_counter(
    prev_iter: Tensor,
    update_counter: Tensor,
    indices: Tensor,
    iteration: Tensor,
    *,
    counter_halflife: int = -1,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(last iterations, counts, rows, iteration) -> last iterations, counts, in place.

    Inputs: int64 (R), double (R), indices of rows, one int64. The count of a row halves in
    `counter_halflife` (-1: no counting) iterations, and grows by one when the row occurs.
    Follows RowWiseCounterOp, caffe2/sgd/rowwise_counter.h, PyTorch 1.8.1.
    """
    last, counts = prev_iter, update_counter
    require(last.numel() == counts.numel(), "there is one count per row", last, counts)
    require(iteration.numel() == 1, "the iteration has one element", iteration)
    double, int64 = torch.float64, torch.int64
    has_kernel = takes_kernels(counts, dtype=double) and takes_kernels(last, iteration, dtype=int64)
    has_kernel = has_kernel and takes_kernels(indices, dtype=indices.dtype)
    if has_kernel:
        sizes = (indices.numel(), last.numel(), indices.dtype is int64)
        given = (indices, iteration, *sizes, counter_halflife)
        return stepped(step_kernels.count_rows, out, (last, counts), *given)
    require_range("rows", indices, last.numel())
    last, counts = (writable(out, o, one) for o, one in enumerate((last, counts)))
    flat = indices.reshape(-1).long()
    if counter_halflife <= 0 or not flat.numel():
        return last, counts
    step, rate = int(iteration.view(-1)[0]), math.log(2) / counter_halflife
    rows = flat.tolist()
    at = dict(zip(rows, last.view(-1)[flat].tolist(), strict=True))
    made = dict(zip(rows, counts.view(-1)[flat].tolist(), strict=True))
    for row in rows:
        made[row] = 1 + math.exp(-max(0, step - at[row]) * rate) * made[row]
        at[row] = max(step, at[row])
    last.view(-1)[flat] = last.new_tensor([at[row] for row in rows])
    counts.view(-1)[flat] = counts.new_tensor([made[row] for row in rows])
    return last, counts
