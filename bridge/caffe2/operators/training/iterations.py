# SPDX-License-Identifier: Apache-2.0
"""Counters of iterations, and of how often rows occur, decaying over iterations."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.blobs.objects import Mutex
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import INT64, INTS, require, require_range
from bridge.caffe2.operators.base.cpu_kernels import takes_kernels
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.objects.stats import Stat
from bridge.caffe2.operators.training import step_kernels
from bridge.caffe2.operators.training.optimizers import stepped, writable

_LARGEST = 2**63 - 1


@register_operator(
    "Iter", ("cpu", "cuda"), inputs="0-1", outputs="1", inplace="0>0!", gradient="none"
)
class Iter(TorchOperator):
    """Add one to the int64 in the output, which is also the input; set it to 1 if there is none.

    It is on the CPU wherever the operator runs. An int32 becomes an int64 with the same value; in
    Caffe2 the value is lost.

    Raises EnforceNotMet: it holds something else, a negative number, or the largest int64.
    Follows IterOp, caffe2/sgd/iter_op.h, PyTorch 1.8.1.
    """

    reads_outputs = True

    def RunOnDevice(self) -> None:
        if self.InputSize() == 0 and not self.OutputIsTensorType(0, "cpu"):
            operand(self.Output(0, [1], c10.device("cpu").dtype(c10.int64))).fill_(1)
            return
        self.count()

    def count(self) -> None:
        """Add one to the output."""
        tensor = self.OutputTensorOrUndefined(0)
        if tensor.IsType(c10.int32) and tensor.numel() == 1 and tensor.GetDeviceType() == c10.CPU:
            before = int(operand(tensor))
            require(before >= 0, "the count is not negative", before)
            options = c10.device("cpu").dtype(c10.int64)
            operand(self.Output(0, list(tensor.sizes()), options)).fill_(before + 1)
            return
        holds_one = tensor.IsType(c10.int64) and tensor.numel() == 1
        holds_one = holds_one and tensor.GetDeviceType() == c10.CPU
        require(holds_one, "the output holds one int64, on the CPU")
        room = operand(tensor)
        if not step_kernels.count(room, _LARGEST):
            require(False, "the count is in [0, 2**63 - 1)", int(room))


@register_operator(
    "AtomicIter", ("cpu", "cuda"), inputs="2", outputs="1", inplace="1>0!", gradient="none"
)
class AtomicIter(Iter):
    """(mutex, count) -> count + 1, in place.

    Counts its runs as atomic_iter/stats/<name of input 1>/num_iter.
    Follows AtomicIterOp, caffe2/sgd/iter_op.h, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stat = Stat(f"atomic_iter/stats/{self._definition.inputs[1]}", "num_iter")

    def RunOnDevice(self) -> None:
        with self.Input(0, Mutex).lock:
            self.count()
        self._stat.put(1)


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
