# SPDX-License-Identifier: Apache-2.0
"""Sums over dimensions: weighted (ReduceFrontWeightedSum), or to the sizes of another tensor."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.torch_operator import FLOAT, FLOATS, TorchOperator, enforce
from bridge.caffe2.operators.elementwise.legacy_broadcast import LegacyBroadcast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("ReduceFrontWeightedSum")
class ReduceFrontWeightedSum(TorchOperator):
    """The sum of the rows of input 0 times the weights in input 1."""

    def RunOnDevice(self) -> None:
        x, weights = self.x(0, FLOAT), self.x(1, FLOAT)
        n = self.GetSingleArgument("num_reduce_dim", 1)
        enforce(0 <= n <= x.dim(), f"num_reduce_dim is {n}, out of range for {x.dim()} dimensions.")
        rows = x.reshape(x.shape[:n].numel(), x.shape[n:].numel())
        enforce(
            weights.numel() == len(rows),
            f"There are {weights.numel()} weights, but {len(rows)} rows.",
        )
        self.put(0, (rows * weights.reshape(-1, 1)).sum(0).reshape(x.shape[n:]))


@register_operator("SumReduceLike")
class SumReduceLike(LegacyBroadcast):
    """Input 0 summed to the sizes of input 1, which broadcasts with `broadcast`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.read_axis_str()

    def RunOnDevice(self) -> None:
        a, b = self.x(0, FLOATS), self.x(1, None)  # only the sizes of b are used
        if b.numel() == 1:
            self.put(0, a.sum().reshape(b.shape))
            return
        like = self.aligned(a, b)
        over = [dim for dim in range(a.dim()) if like.size(dim) == 1 and a.size(dim) != 1]
        self.put(0, (a.sum(over) if over else a.clone()).reshape(b.shape))
