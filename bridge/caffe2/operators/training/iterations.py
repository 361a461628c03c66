# SPDX-License-Identifier: Apache-2.0
"""Iter and AtomicIter: counters of iterations."""

from __future__ import annotations

from typing import Any

from bridge import c10
from bridge.caffe2.blobs.objects import Mutex
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.objects.stat_registry import Stat
from bridge.caffe2.operators.training import step_kernels

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
