# SPDX-License-Identifier: Apache-2.0
"""Locally connected layers: convolutions with a separate filter per window."""

from __future__ import annotations

import math

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.window_operator import WindowOperator, register_by_rank
from bridge.caffe2.operators.images.pooling import added_up, windows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

    from bridge.caffe2.operators.base.window_operator import Window

__all__ = ["LC", "LCGradient"]


class Local(WindowOperator):
    """The base class of LC and its gradient; for the arguments see WindowOperator.

    X: (N, C, ...), filter: (windows..., M, C, kernel...); in the order NHWC X: (N, ..., C), filter:
    (windows..., M, kernel..., C). `group` must be 1: with more groups Caffe2's operator crashes.
    """

    def operands(self) -> tuple[Tensor, Window, Tensor, Tensor]:
        """Return X, windows, the elements of each window, and the filter, as matrices.

        Elements: (N, C, windows, kernel elements), filter: (windows, M, C, kernel elements).
        """
        x, w = channels_first(self.x(0), self.order), self.x(1)
        self.enforce(self.GetSingleArgument("group", 1) == 1, "group is 1")
        rank = x.dim() - 2
        self.enforce(1 <= rank <= 3, "X has one to three spatial dimensions", x)
        self.enforce(
            w.dim() == 2 * rank + 2,
            "the filter has dimensions for windows, outputs, channels and kernel",
            w,
        )
        window = self.window(x.shape[2:])
        self.enforce(set(window.dilation) == {1}, "dilation is 1", window.dilation)
        self.enforce(
            list(w.shape[:rank]) == list(window.sizes), "there is one filter per window", w
        )
        if self.order == "NHWC":
            w = w.movedim(-1, rank + 1)
        self.outputs = w.shape[rank]
        kernel = list(w.shape[rank + 2 :])
        self.enforce(kernel == list(window.kernel), "the filter has the size of the kernel", w)
        self.enforce(x.shape[1] == w.shape[rank + 1], "X has as many channels as the filter", x, w)
        places, elements = math.prod(window.sizes), math.prod(window.kernel)
        cut = windows_of(window.padded(x), window)
        cut = cut.reshape(*x.shape[:2], places, elements)
        filters = w.reshape(places, self.outputs, x.shape[1], elements)
        return x, window, cut, filters

    def whole(self, y: Tensor, window: Window) -> Tensor:
        """Return a view of `y` (N, M, windows) as an image in the operator's order."""
        return channels_last(y.reshape(y.shape[0], self.outputs, *window.sizes), self.order)


@register_operator("LC")
@register_operator("LC1D")
@register_operator("LC2D")
@register_operator("LC3D")
class LC(Local):
    """(X, filter, optionally bias: (windows..., M)) -> Y: (N, M, ...); see Local.

    Follows LocallyConnectedOp, caffe2/operators/locally_connected_op_impl.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        _, window, cut, filters = self.operands()
        y = torch.einsum("ncyk,ymck->nmy", cut, filters)
        if self.InputSize() == 3:
            b = self.x(2)
            self.enforce(
                list(b.shape) == [*window.sizes, self.outputs],
                "there is one bias per element of Y's images",
                b,
            )
            y = y + b.view(-1, self.outputs).t()
        self.put(0, self.whole(y, window))


@register_by_rank("LC", "Gradient")
class LCGradient(Local):
    """(X, filter, dY) -> dfilter, dbias unless `no_bias`, and dX if there is an output for it."""

    def RunOnDevice(self) -> None:
        x, window, cut, filters = self.operands()
        dy = channels_first(self.x(2), self.order)
        rows = dy.reshape(x.shape[0], self.outputs, filters.shape[0])
        has_bias, has_dx = self.gradients_requested()
        dw = torch.einsum("ncyk,nmy->ymck", cut, rows)
        shape = [*window.sizes, self.outputs, x.shape[1], *window.kernel]
        dw = dw.reshape(shape)
        rank = len(window.sizes)
        self.put(0, dw.movedim(rank + 1, -1) if self.order == "NHWC" else dw)
        if has_bias:
            self.put(1, dy.sum(0).movedim(0, -1))
        if has_dx:
            parts = torch.einsum("ymck,nmy->ncyk", filters, rows)
            parts = parts.reshape(*x.shape[:2], *window.sizes, *window.kernel)
            self.put(self.OutputSize() - 1, channels_last(added_up(parts, x, window), self.order))
