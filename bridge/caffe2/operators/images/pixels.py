# SPDX-License-Identifier: Apache-2.0
"""Images padded, summed up (IntegralImage), and as the pixels of style transfer.

Follows pad_op.cc and integral_image_op.cc in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from bridge import c10
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import RandomGenerator, operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.gradients import with_gradient
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
        return functional.pad(x, self.sides, mode=self.mode)


@operator("PadImage", gradient="$Gradient g0 > 0")
def pad_image(x: Tensor, *, padding: Padding) -> Tensor:
    """X: (N, C, H, W) -> Y with padding; see Padding."""
    return padding.order.last(padding.around(padding.order.first(x), padding.value))


@operator("PadImageGradient")
def pad_image_gradient(dy: Tensor, *, padding: Padding) -> Tensor:
    """dY -> dX: gradients of the padding are added to the elements it was copied from."""
    dy = padding.order.first(dy)
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
    return padding.order.last(room.narrow(2, 0, sizes[0] * sizes[1]).reshape(n, c, *sizes))


@operator("IntegralImage", gradient="$Gradient i0 g0 > 0")
def integral_image(x: Tensor) -> Tensor:
    """X: (N, C, H, W) -> (N, C, H + 1, W + 1), sums over all elements above and to the left."""
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


@operator(
    "PackedInt8BGRANHWCToNCHWCStylizerPreprocess", types={"x": (c10.uint8,)}, effects=("random",)
)
def stylizer_preprocess(
    x: Tensor,
    mean: Tensor,
    *,
    noise_std: float = 10.0,
    noise_size: int = 491,
    generator: RandomGenerator = None,
) -> Tensor:
    """Pixels (N, H, W, 4) of uint8, the last one ignored, minus mean (3), as (N, 3, H, W).

    Normal noise of `noise_std` is added, of which there are `noise_size` values, repeated.
    """
    require(x.dim() == 4 and x.shape[3] == 4, "X is (N, H, W, 4)", x)
    require(mean.numel() == 3, "there is a mean per color", mean)
    require(noise_size > 0, "noise_size is positive", noise_size)
    y = x[..., :3].float() - mean.reshape(3)
    y = y.movedim(3, 1).contiguous()
    if noise_std == 0:
        return y
    noise = torch.empty(noise_size, dtype=y.dtype, device=y.device)
    noise.normal_(0.0, noise_std, generator=generator)
    places = torch.arange(y.numel(), device=y.device) % noise_size
    return y + noise[places].view(y.shape)


@operator("BRGNCHWCToPackedInt8BGRAStylizerDeprocess")
def stylizer_deprocess(x: Tensor, mean: Tensor) -> Tensor:
    """X (N, 3, H, W) plus mean (3), from 0 to 255, as pixels (N, H, W, 4) of uint8, opaque."""
    require(x.dim() == 4 and x.shape[1] == 3, "X is (N, 3, H, W)", x)
    require(mean.numel() == 3, "there is a mean per color", mean)
    y = (x + mean.view(3, 1, 1)).clamp(0, 255).to(torch.uint8).movedim(1, 3)
    return functional.pad(y, (0, 1), value=255)
