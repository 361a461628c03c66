# SPDX-License-Identifier: Apache-2.0
"""Accumulate: adds to the old value of its output."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import FLOAT
from bridge.caffe2.operators.base.torch_operator import TorchOperator


@register_operator("Accumulate", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
class Accumulate(TorchOperator):
    """Input 0 plus `gamma` (1) times the output's former elements, if it has as many.

    A class, since a function does not see the old value of its output.
    """

    reads_outputs = True

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        before = self.Output(0)
        known = before.dtype() is c10.float32 and before.storage_initialized()
        known = known and before.GetDevice() == self.device
        if not known or before.numel() != x.numel():
            self.out(0, x.shape, c10.float32).copy_(x)
            return
        gamma = self.GetSingleArgument("gamma", 1.0)
        self.out(0, x.shape, c10.float32).mul_(gamma).add_(x)
