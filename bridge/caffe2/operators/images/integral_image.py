# SPDX-License-Identifier: Apache-2.0
"""IntegralImage and its gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.gradients import with_gradient


@operator("IntegralImage", gradient="$Gradient i0 g0 > 0")
def integral_image(x: Tensor) -> Tensor:
    """X: (N, C, H, W) -> (N, C, H + 1, W + 1), sums over all elements above and to the left.

    Follows IntegralImageOp, caffe2/operators/integral_image_op.cc, PyTorch 1.8.1.
    """
    require(x.dim() == 4, "X has 4 dimensions", x)
    y: Tensor = torch.constant_pad_nd(x.cumsum(2).cumsum(3), (1, 0, 1, 0))
    if not (x.requires_grad and torch.is_grad_enabled()):
        return y
    # The gradient is Caffe2's: it sums from the start, too, not from the end.
    turned = x.flip(2, 3).cumsum(2).cumsum(3).flip(2, 3)
    other = torch.constant_pad_nd(turned, (0, 1, 0, 1))
    return with_gradient(y.detach(), other)


@operator("IntegralImageGradient")
def integral_image_gradient(x: Tensor, dy: Tensor) -> Tensor:
    """(X, dY) -> dX."""
    require(x.dim() == 4 and dy.dim() == 4, "X and dY have 4 dimensions", x, dy)
    return dy.cumsum(2).cumsum(3)[:, :, : x.shape[2], : x.shape[3]]
