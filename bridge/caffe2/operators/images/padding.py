# SPDX-License-Identifier: Apache-2.0
"""PadImage and its gradient."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.checks import image_order, require
from bridge.caffe2.operators.base.windows import NOTSET, Windows

_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}


class Padding(Windows):
    """The padding of images.

    Arguments: `pad`, the sides, or `pads`, as in Windows; `mode` (constant, reflect or edge),
    `value` (0) of constant.
    """

    takes = f"{Windows.takes}, str mode, float value"

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        mode = arguments.single("mode", "constant")
        require(mode in _MODES, f"mode is one of {', '.join(_MODES)}", mode)
        require(self.legacy == NOTSET, "legacy_pad is 0")
        require({*self.dilation, *self.stride} <= {1}, "padding has no stride and no dilation")
        require(len(self.pads) == 4, "there are four pads", self.pads)
        top, left, bottom, right = self.pads
        self.sides = (left, right, top, bottom)
        self.mode = _MODES[mode]
        self.value = arguments.single("value", 0.0)

    def around(self, x: Tensor, value: float) -> Tensor:
        """Return an image (N, C, H, W) with padding, of `value` if it is constant."""
        require(x.dim() == 4, "X has 4 dimensions", x)
        if self.mode == "constant":
            return torch.constant_pad_nd(x, self.sides, value)
        if self.mode == "reflect":
            height, width = x.shape[2:]
            fits = max(self.sides[:2]) < width and max(self.sides[2:]) < height
            require(fits, "reflecting pads are smaller than the image", self.pads, x)
        found = functional.pad(x, self.sides, mode=self.mode)
        return found


@operator("PadImage", gradient="$Gradient g0 > 0")
def pad_image(x: Tensor, *, padding: Padding, order: str = "NCHW") -> Tensor:
    """X: (N, C, H, W) -> Y with padding; see Padding.

    Follows PadImageOp, caffe2/operators/pad_op.cc, PyTorch 1.8.1.
    """
    order = image_order(order)
    return channels_last(padding.around(channels_first(x, order), padding.value), order)


@operator("PadImageGradient")
def pad_image_gradient(dy: Tensor, *, padding: Padding, order: str = "NCHW") -> Tensor:
    """dY -> dX: gradients of the padding are added to the elements it was copied from."""
    order = image_order(order)
    dy = channels_first(dy, order)
    left, right, top, bottom = padding.sides
    n, c, height, width = dy.shape
    sizes = (height - top - bottom, width - left - right)
    require(min(sizes) > 0, "dY is larger than the pads", dy, padding.pads)
    places = torch.arange(sizes[0] * sizes[1], dtype=torch.float64, device=dy.device)
    index = padding.around(places.view(1, 1, *sizes), -1.0).long().view(-1)
    # An element that was not copied from the image has the index -1, and goes to an element that is
    # cut off.
    room = dy.new_zeros(n, c, sizes[0] * sizes[1] + 1)
    room = room.index_add(2, index.remainder(room.shape[2]), dy.flatten(2))
    return channels_last(room.narrow(2, 0, sizes[0] * sizes[1]).reshape(n, c, *sizes), order)
