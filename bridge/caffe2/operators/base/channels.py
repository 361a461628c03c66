# SPDX-License-Identifier: Apache-2.0
"""The channel dimension of images in the orders NCHW and NHWC."""

from __future__ import annotations

from torch import Tensor

from bridge.caffe2.operators.base.checks import require


def channels_first(x: Tensor, order: str) -> Tensor:
    """Return a view (N, C, ...) of an image in `order` (NCHW or NHWC)."""
    return x if order == "NCHW" else x.movedim(-1, 1)


def channels_last(x: Tensor, order: str) -> Tensor:
    """Return a view in `order` (NCHW or NHWC) of an image (N, C, ...)."""
    return x if order == "NCHW" else x.movedim(1, -1)


def require_per_channel(x: Tensor, *parameters: Tensor) -> None:
    """Raise EnforceNotMet unless each parameter has one value per channel of x (N, C, ...)."""
    for values in parameters:
        require(values.numel() == x.shape[1], "there is one value per channel", values, x)


def along_channels(values: Tensor, x: Tensor, order: str) -> Tensor:
    """Return a view of `values`, one per channel of X, that broadcasts with X.

    Raises EnforceNotMet: X has no channels, or another number of them.
    """
    channel = 1 if order == "NCHW" else x.dim() - 1
    require(0 <= channel < x.dim(), "X has a channel dimension", x)
    require(values.numel() == x.shape[channel], "there is one value per channel", values, x)
    return values.view([-1 if i == channel else 1 for i in range(x.dim())])


def channel_sums(x: Tensor, order: str) -> Tensor:
    """Return the sum of `x` over all dimensions but the channels: (C)."""
    return channels_first(x, order).transpose(0, 1).flatten(1).sum(1)
