# SPDX-License-Identifier: Apache-2.0
"""IntegralImage and its gradient."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import functional

__all__ = ["IntegralImage"]


@register_operator("IntegralImage")
class IntegralImage(FloatOperator):
    """X: (N, C, H, W) -> (N, C, H + 1, W + 1), sums over all elements above and to the left.

    Follows IntegralImageOp, caffe2/operators/integral_image_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        self.put(0, functional.pad(x.cumsum(2).cumsum(3), (1, 0, 1, 0)))


@register_operator("IntegralImageGradient")
class IntegralImageGradient(FloatOperator):
    """(X, dY) -> dX."""

    def RunOnDevice(self) -> None:
        x, dy = self.x(0), self.x(1)
        self.enforce(x.dim() == 4 and dy.dim() == 4, "X and dY have 4 dimensions", x, dy)
        self.put(0, dy.cumsum(2).cumsum(3)[:, :, : x.shape[2], : x.shape[3]])
