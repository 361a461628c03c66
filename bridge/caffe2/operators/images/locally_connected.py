# SPDX-License-Identifier: Apache-2.0
"""Locally connected layers: convolutions with a separate filter per window."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OutputCount
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.checks import image_order, require
from bridge.caffe2.operators.base.windows import (
    Window,
    Windows,
    added_up,
    by_rank,
    convolution_gradient,
    wanted_gradients,
    windows_of,
)


def _operands(
    x: Tensor, w: Tensor, windows: Windows, group: int, order: str
) -> tuple[Window, Tensor, Tensor]:
    """Return the windows, their elements (N, C, windows, kernel elements), and the filter.

    X: (N, C, ...), filter: (windows..., M, C, kernel...); in the order NHWC the filter is
    (windows..., M, kernel..., C). The result is (windows, M, C, kernel elements). `group` must be
    1: with more groups Caffe2's operator crashes.
    """
    require(group == 1, "group is 1", group)
    rank = x.dim() - 2
    require(1 <= rank <= 3, "X has one to three spatial dimensions", x)
    fits = w.dim() == 2 * rank + 2
    require(fits, "the filter has dimensions for windows, outputs, channels and kernel", w)
    window = windows.on(x.shape[2:])
    require(set(window.dilation) == {1}, "dilation is 1", window.dilation)
    require(list(w.shape[:rank]) == list(window.sizes), "there is one filter per window", w)
    w = w.movedim(-1, rank + 1) if order == "NHWC" else w
    kernel = list(w.shape[rank + 2 :])
    require(kernel == list(window.kernel), "the filter has the size of the kernel", w)
    require(x.shape[1] == w.shape[rank + 1], "X has as many channels as the filter", x, w)
    places, elements = math.prod(window.sizes), math.prod(window.kernel)
    cut = windows_of(window.padded(x), window).reshape(*x.shape[:2], places, elements)
    return window, cut, w.reshape(places, w.shape[rank], x.shape[1], elements)


@by_rank("LC", gradient=convolution_gradient)
def locally_connected(
    x: Tensor,
    filter: Tensor,
    bias: Tensor | None = None,
    *,
    windows: Windows,
    group: int = 1,
    order: str = "NCHW",
) -> Tensor:
    """(X, filter, optionally bias: (windows..., M)) -> Y: (N, M, ...).

    X: (N, C, ...), filter: (windows..., M, C, kernel...); in the order NHWC X: (N, ..., C), filter:
    (windows..., M, kernel..., C). For the arguments see Windows; `group` must be 1.
    Follows LocallyConnectedOp, caffe2/operators/locally_connected_op_impl.h, PyTorch 1.8.1.
    """
    order = image_order(order)
    x = channels_first(x, order)
    window, cut, filters = _operands(x, filter, windows, group, order)
    outputs = filters.shape[1]
    y = torch.einsum("ncyk,ymck->nmy", cut, filters)
    if bias is not None:
        fits = list(bias.shape) == [*window.sizes, outputs]
        require(fits, "there is one bias per element of Y's images", bias)
        y = y + bias.view(-1, outputs).t()
    return channels_last(y.reshape(x.shape[0], outputs, *window.sizes), order)


@by_rank("LC", "Gradient", inputs="2-3", outputs="1-3")
def locally_connected_gradient(
    x: Tensor,
    filter: Tensor,
    dy: Tensor,
    *,
    windows: Windows,
    group: int = 1,
    order: str = "NCHW",
    no_bias: int = 0,
    outputs: OutputCount = 3,
) -> tuple[Tensor, ...]:
    """(X, filter, dY) -> dfilter, dbias unless `no_bias`, and dX if there is an output for it."""
    order = image_order(order)
    x, dy = channels_first(x, order), channels_first(dy, order)
    window, cut, filters = _operands(x, filter, windows, group, order)
    has_bias, has_dx = wanted_gradients(no_bias, outputs)
    places, rank = filters.shape[0], len(window.sizes)
    rows = dy.reshape(x.shape[0], filters.shape[1], places)
    dw = torch.einsum("ncyk,nmy->ymck", cut, rows)
    dw = dw.reshape(*window.sizes, filters.shape[1], x.shape[1], *window.kernel)
    found = [dw.movedim(rank + 1, -1) if order == "NHWC" else dw]
    if has_bias:
        found.append(dy.sum(0).movedim(0, -1))
    if has_dx:
        parts = torch.einsum("ymck,nmy->ncyk", filters, rows)
        parts = parts.reshape(*x.shape[:2], *window.sizes, *window.kernel)
        found.append(channels_last(added_up(parts, x.shape, window), order))
    return tuple(found)
