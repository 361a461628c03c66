# SPDX-License-Identifier: Apache-2.0
"""Moments (mean and variance) and its gradient."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.reductions.reduce_gradients import OverAxes

__all__ = ["Moments"]


@register_operator("Moments")
class Moments(OverAxes):
    """X -> mean, variance over `axes`; both are 0 for no elements; argument `keepdims` (True).

    Follows MomentsOp, caffe2/operators/moments_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        axes = self.axes(x)
        keep = bool(self.GetSingleArgument("keepdims", 1))
        if not axes:
            mean, var = x.clone(), torch.zeros_like(x)
        elif not x.numel():
            mean, var = x.sum(axes, keep), x.sum(axes, keep)
        else:
            var, mean = torch.var_mean(x, axes, correction=0, keepdim=keep)
        self.put(0, mean)
        self.put(1, var)


@register_operator("MomentsGradient")
class MomentsGradient(OverAxes):
    """(dmean, dvariance, X, mean) -> dX."""

    def RunOnDevice(self) -> None:
        x = self.x(2)
        shape = self.kept(x)
        dmean, dvar, mean = (self.x(i).reshape(shape) for i in (0, 1, 3))
        share = mean.numel() / max(x.numel(), 1)
        self.put(0, (dmean + 2 * (x - mean) * dvar) * share)
