# SPDX-License-Identifier: Apache-2.0
"""The channel dimension of images in the orders NCHW and NHWC."""

from __future__ import annotations

from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.operators.base.checks import image_order, require


class Order:
    """The argument `order` of images: NCHW, the default, or NHWC.

    `is_first`: channels come first. Raises EnforceNotMet: another order.
    """

    takes = "str order"

    def __init__(self, arguments: Arguments) -> None:
        self.is_first = image_order(arguments.single("order", "NCHW")) == "NCHW"

    def first(self, x: Tensor) -> Tensor:
        """Return a view (N, C, ...) of an image in this order."""
        return x if self.is_first else x.movedim(-1, 1)

    def last(self, x: Tensor) -> Tensor:
        """Return a view in this order of an image (N, C, ...)."""
        return x if self.is_first else x.movedim(1, -1)

    def along(self, values: Tensor, x: Tensor) -> Tensor:
        """Return a view of `values`, one per channel of X, that broadcasts with X.

        Raises EnforceNotMet: X has no channels, or another number of them.
        """
        return along_channels(values, x, 1 if self.is_first else x.dim() - 1)

    def sums(self, x: Tensor) -> Tensor:
        """Return the sum of `x` over all dimensions but the channels: (C)."""
        return channel_sums(self.first(x))


class ChannelsFirst(Order):
    """The argument `order` where NCHW is the only one. Raises EnforceNotMet: it is not."""

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        require(self.is_first, "order is NCHW, not NHWC")


def along_channels(values: Tensor, x: Tensor, channel: int = 1) -> Tensor:
    """Return a view of `values`, one per index of dimension `channel` of X, as `Order.along`."""
    require(0 <= channel < x.dim(), "X has a channel dimension", x)
    require(values.numel() == x.shape[channel], "there is one value per channel", values, x)
    return values.view([-1 if i == channel else 1 for i in range(x.dim())])


def channel_sums(x: Tensor) -> Tensor:
    """Return the sum of `x` (N, C, ...) over all dimensions but the channels: (C)."""
    return x.transpose(0, 1).flatten(1).sum(1)


def require_per_channel(x: Tensor, *parameters: Tensor) -> None:
    """Raise EnforceNotMet unless each parameter has one value per channel of x (N, C, ...)."""
    for values in parameters:
        require(values.numel() == x.shape[1], "there is one value per channel", values, x)
