# SPDX-License-Identifier: Apache-2.0
"""Transposed convolution of images, in either order, and its gradients."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.lazy_torch import functional, torch
from bridge.caffe2.operators.base.window_operator import NOTSET, WindowOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

__all__ = ["ConvTranspose", "ConvTransposeGradient"]


class Transposed(WindowOperator):
    """The base class of ConvTranspose and its gradient.

    Arguments: those of WindowOperator without dilation and global pooling; `adj`, `adj_h` and
    `adj_w`, or `adjs` (0): how much larger the output is at its end; legacy_pad other than 0: no
    padding.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.group = self.GetSingleArgument("group", 1)
        self.adj = self._pair("adj") or [0] * len(self.kernel)
        self.enforce(
            len(self.adj) == len(self.kernel), "there is one adj per kernel size", self.adj
        )
        self.enforce(
            min(self.kernel) > 0 and min(self.stride) > 0 and min(self.adj) >= 0,
            "kernel and stride are positive, adj is not negative",
            self.kernel,
            self.stride,
            self.adj,
        )
        self.enforce(
            all(adj <= stride for adj, stride in zip(self.adj, self.stride, strict=True)),
            "adj is at most the stride",
            self.adj,
            self.stride,
        )
        pads = self.pads if self.legacy == NOTSET else [0] * 2 * len(self.kernel)
        self.enforce(min(pads) >= 0, "pads are not negative", pads)
        self.head, self.tail = pads[: len(pads) // 2], pads[len(pads) // 2 :]

    def operands(self) -> tuple[Tensor, Tensor]:
        """Return X (N, C, H, W) and the filter (C, M / group, kernel_h, kernel_w)."""
        x, w = channels_first(self.x(0), self.order), channels_first(self.x(1), self.order)
        self.enforce(x.dim() == 4 and w.dim() == 4, "X and the filter have 4 dimensions", x, w)
        self.enforce(x.shape[1] == w.shape[0], "X has one channel per row of the filter", x, w)
        self.enforce(
            x.shape[1] % self.group == 0, "the number of channels is divisible by group", x
        )
        self.enforce(
            list(w.shape[2:]) == list(self.kernel), "the filter has the size of the kernel", w
        )
        self.enforce(min(x.shape[1:]) > 0, "an image has at least one element", x)
        return x, w

    def sizes(self, x: Tensor) -> list[int]:
        """Return height and width of the output. Raises EnforceNotMet: pads are too large."""
        found = [
            (x.shape[i + 2] - 1) * self.stride[i]
            + self.kernel[i]
            + self.adj[i]
            - self.head[i]
            - self.tail[i]
            for i in range(2)
        ]
        self.enforce(min(found) >= 0, "the output has no negative size", found)
        return found


@register_operator("ConvTranspose")
class ConvTranspose(Transposed):
    """X: (N, C, H, W), filter: (C, M / group, kernel...), optionally bias: (M) -> (N, M, ...).

    A size of Y is (d - 1) * stride + kernel + adj - pads. In the order NHWC X is (N, H, W, C) and
    the filter (C, kernel..., M / group).
    Raises EnforceNotMet: shapes do not match.
    Follows ConvTransposeOp, caffe2/operators/conv_transpose_op_impl.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, w = self.operands()
        b = self.x(2) if self.InputSize() == 3 else None
        outputs = w.shape[1] * self.group
        self.enforce(b is None or b.shape == (outputs,), "there is one bias per output", b)
        sizes = self.sizes(x)
        if min(sizes) == 0:
            self.out(0, channels_last(x.new_empty(len(x), outputs, *sizes), self.order).shape)
            return
        if self.head == self.tail and all(
            adj < stride for adj, stride in zip(self.adj, self.stride, strict=True)
        ):
            y = functional.conv_transpose2d(x, w, b, self.stride, self.head, self.adj, self.group)
        else:
            y = functional.conv_transpose2d(x, w, None, self.stride, 0, 0, self.group)
            (top, left), (low, right) = self.head, self.tail
            sides = (-left, self.adj[1] - right, -top, self.adj[0] - low)
            y = functional.pad(y, sides)
            if b is not None:
                y.add_(b.view(-1, 1, 1))
        self.put(0, channels_last(y, self.order))


@register_operator("ConvTransposeGradient")
class ConvTransposeGradient(Transposed):
    """(X, filter, dY) -> dfilter, dbias unless `no_bias`, dX if there is an output for it.

    Follows ConvTransposeGradientOp, caffe2/operators/conv_transpose_op_impl.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, w = self.operands()
        dy = channels_first(self.x(2), self.order)
        has_bias, has_dx = self.gradients_requested()
        # Elements in the padding, and those added by adj, are not computed by the filter.
        (top, left), (low, right) = self.head, self.tail
        sides = (left, right - self.adj[1], top, low - self.adj[0])
        dx, dw, _ = torch.ops.aten.convolution_backward(
            functional.pad(dy, sides),
            x,
            w,
            None,
            self.stride,
            [0, 0],
            [1, 1],
            True,
            [0, 0],
            self.group,
            [has_dx, True, False],
        )
        self.put(0, channels_last(dw, self.order))
        if has_bias:
            self.put(1, dy.sum((0, 2, 3)))
        if has_dx:
            self.put(self.OutputSize() - 1, channels_last(dx, self.order))
