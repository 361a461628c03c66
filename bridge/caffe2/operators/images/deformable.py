# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose windows sample an image at offsets, bilinearly.

Caffe2 has them for CUDA only. Follows deform_conv_op.cu in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import add_pattern
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.windows import Window
from bridge.caffe2.operators.images.convolution import Convolution


def _deformable_gradient(maker: GradientMaker) -> None:
    no_bias = len(maker.op.input) == 3
    rest = "{no_bias=1} i0 i1 i2 g0 > 1 2 0" if no_bias else " i0 i1 i2 g0 > 1 2 3 0"
    add_pattern(f"$Gradient{rest}", maker)


@operator("DeformConv", gradient=_deformable_gradient)
def deform_conv(
    x: Tensor,
    offset: Tensor,
    filter: Tensor,
    bias: Tensor | None = None,
    *,
    windows: Convolution,
    deformable_group: int = 1,
) -> Tensor:
    """X: (N, C, H, W), offset: (N, groups * kernel * 2, H', W'), filter, bias -> (N, M, H', W').

    Each of `deformable_group` groups of channels has an offset in y and x for each element of the
    kernel and each window. Outside of the image everything is 0. For the arguments see Windows.
    """
    require(windows.order.is_first and x.dim() == 4, "X is (N, C, H, W)", x)
    (n, channels), group = x.shape[:2], windows.group
    window = windows.on(x.shape[2:])
    places = window.kernel[0] * window.kernel[1]
    fits = list(filter.shape[1:]) == [channels // group, *window.kernel]
    require(fits, "the filter has the channels and the size of the windows", filter)
    fits = list(offset.shape) == [n, deformable_group * places * 2, *window.sizes]
    require(fits, "there are two offsets for each element of the windows", offset)
    columns = _sampled(x, offset, window, deformable_group)
    weights = filter.view(group, -1, filter[0].numel())
    rows = columns.view(n, group, weights.shape[2], -1)
    y = torch.matmul(weights, rows).reshape(n, -1, *window.sizes)
    return y if bias is None else y + bias.view(-1, 1, 1)


def _sampled(x: Tensor, offset: Tensor, window: Window, groups: int) -> Tensor:
    """Return the elements of all windows: (N, C * kernel, H' * W')."""
    n, channels, height, width = x.shape
    places = window.kernel[0] * window.kernel[1]
    moved = offset.view(n, groups, places, 2, *window.sizes)
    y = _grid(window, 0, x) + moved[:, :, :, 0]
    across = _grid(window, 1, x) + moved[:, :, :, 1]
    inside = (y >= 0) & (across >= 0) & (y < height) & (across < width)
    planes = x.view(n, groups, channels // groups, height * width)
    made: Tensor | None = None
    top, left = y.detach().floor(), across.detach().floor()
    for row, by_row in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, by_column in ((left, 1 - (across - left)), (left + 1, across - left)):
            # Beyond the last row or column the sample is that of the last one.
            at_row = row.clamp(0, height - 1)
            at_column = column.clamp(0, width - 1)
            index = (at_row * width + at_column).long().view(n, groups, 1, -1)
            index = index.expand(-1, -1, planes.shape[2], -1)
            weight = torch.where(inside, by_row * by_column, 0.0).view(n, groups, 1, -1)
            part = planes.gather(3, index) * weight
            made = part if made is None else made + part
    assert made is not None
    return made.view(n, channels * places, -1)


def _grid(window: Window, dimension: int, like: Tensor) -> Tensor:
    """Return the places of the windows' elements along a dimension: (kernel, H', W') or so."""
    kernel, size = window.kernel[dimension], window.sizes[dimension]
    starts = torch.arange(size, dtype=like.dtype, device=like.device) * window.stride[dimension]
    inner = torch.arange(kernel, dtype=like.dtype, device=like.device) * window.dilation[dimension]
    found = starts - window.head[dimension] + inner.view(-1, 1)
    shape = (1, kernel, 1, size) if dimension else (kernel, 1, size, 1)
    return found.view(shape).expand(*window.kernel, *window.sizes).flatten(0, 1)


@operator("DeformConvGradient", inputs="4", outputs="2-4", effects=("values",))
def deform_conv_gradient(
    x: Tensor,
    offset: Tensor,
    filter: Tensor,
    dy: Tensor,
    *,
    windows: Convolution,
    deformable_group: int = 1,
    outputs: OutputCount = 4,
) -> tuple[Tensor, ...]:
    """The gradients of the offset, the filter, the bias unless `no_bias`, and X."""
    with torch.enable_grad():
        given = [one.detach().requires_grad_() for one in (x, offset, filter)]
        y = deform_conv(*given, windows=windows, deformable_group=deformable_group)
        dx, doffset, dfilter = torch.autograd.grad(y, given, dy)
    dbias = () if windows.no_bias else (dy.sum((0, 2, 3)),)
    return (doffset, dfilter, *dbias, dx)[:outputs]
