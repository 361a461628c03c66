# SPDX-License-Identifier: Apache-2.0
"""Maxima with their places. Caffe2 has them for CUDA only.

Follows caffe2/operators/max_pool_with_index.cu, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, LARGEST, require
from bridge.caffe2.operators.images.pooling import PoolWindows


@operator("MaxPoolWithIndex", gradient="$Gradient i0 g0 o1 > 0")
def max_pool_with_index(
    x: Tensor, *, windows: PoolWindows, order: str = "NCHW"
) -> tuple[Tensor, Tensor]:
    """X: (N, C, H, W) -> the maxima of windows, (N, C, H', W'), and their places, int32.

    A place counts the elements of the channel, row by row. For the arguments see Windows.
    """
    require(order == "NCHW" and x.dim() == 4, "X is (N, C, H, W)", x)
    window = windows.on(x.shape[2:])
    parts = window.padded(x, -LARGEST)
    for i in (0, 1):
        parts = parts.narrow(i + 2, 0, (window.sizes[i] - 1) * window.stride[i] + window.kernel[i]
                             ).unfold(i + 2, window.kernel[i], window.stride[i])  # fmt: skip
    made, inner = parts.flatten(4).max(4)
    rows = _starts(window.sizes[0], window.stride[0], window.head[0], x).view(-1, 1)
    columns = _starts(window.sizes[1], window.stride[1], window.head[1], x)
    rows = rows + inner.div(window.kernel[1], rounding_mode="floor")
    columns = columns + inner % window.kernel[1]
    return made, (rows * x.shape[3] + columns).int()


def _starts(count: int, stride: int, head: int, like: Tensor) -> Tensor:
    return torch.arange(count, dtype=torch.int64, device=like.device) * stride - head


@operator("MaxPoolWithIndexGradient", types={"places": INT32})
def max_pool_with_index_gradient(x: Tensor, dy: Tensor, places: Tensor) -> Tensor:
    """(X, dY, places) -> dX: each gradient, added to the place of its maximum."""
    require(dy.shape == places.shape and x.dim() == 4, "dY has the sizes of the places", dy, places)
    made = torch.zeros_like(x).flatten(2)
    made = made.scatter_add(2, places.flatten(2).long(), dy.flatten(2))
    return made.view(x.shape)
