# SPDX-License-Identifier: Apache-2.0
"""Channels of images: where the argument `order` has them, and values for each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

    from bridge.caffe2.operators.base.float_operator import FloatOperator

__all__ = ["by_channel", "channel_sums", "channels_first", "channels_last"]


def channels_first(x: Tensor, order: str) -> Tensor:
    """View an image (N, ..., C) as (N, C, ...) where `order` is NHWC; return it else as it is."""
    return x if order == "NCHW" else x.movedim(-1, 1)


def channels_last(x: Tensor, order: str) -> Tensor:
    """View an image (N, C, ...) in the order that `order` names."""
    return x if order == "NCHW" else x.movedim(1, -1)


def by_channel(op: FloatOperator, values: Tensor, x: Tensor, order: str) -> Tensor:
    """View a value for each channel of X so that it broadcasts on X."""
    channel = 1 if order == "NCHW" else x.dim() - 1
    op.enforce(0 <= channel < x.dim(), "X has channels", x)
    op.enforce(values.numel() == x.shape[channel], "a value for each channel", values, x)
    return values.view([-1 if i == channel else 1 for i in range(x.dim())])


def channel_sums(x: Tensor, order: str) -> Tensor:
    """Sum `x` over all but the channels."""
    return channels_first(x, order).transpose(0, 1).flatten(1).sum(1)
