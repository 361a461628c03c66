# SPDX-License-Identifier: Apache-2.0
"""PadImage and its gradient."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last
from bridge.caffe2.operators.base.lazy_torch import functional, torch
from bridge.caffe2.operators.base.window_operator import NOTSET, WindowOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

__all__ = ["PadImage"]

_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}


class Padding(WindowOperator):
    """The base class of PadImage and its gradient.

    Arguments: `pad`, the sides, or `pads`, as in WindowOperator; `mode` (constant, reflect or
    edge), `value` (0) of constant; `order`.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        mode = self.GetSingleArgument("mode", "constant")
        self.enforce(mode in _MODES, f"mode is one of {', '.join(_MODES)}", mode)
        self.enforce(self.legacy == NOTSET, "legacy_pad is 0")
        self.enforce({*self.dilation, *self.stride} <= {1}, "padding has no stride and no dilation")
        self.enforce(len(self.pads) == 4, "there are four pads", self.pads)
        top, left, bottom, right = self.pads
        self.sides = (left, right, top, bottom)
        self.mode = _MODES[mode]
        self.value = self.GetSingleArgument("value", 0.0)

    def padded(self, x: Tensor) -> Tensor:
        """Return an image (N, C, H, W) with padding."""
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        height, width = x.shape[2:]
        if self.mode == "reflect":
            self.enforce(
                max(self.sides[:2]) < width and max(self.sides[2:]) < height,
                "reflecting pads are smaller than the image",
                self.pads,
                x,
            )
        value = self.value if self.mode == "constant" else None
        found: Tensor = functional.pad(x, self.sides, mode=self.mode, value=value)
        return found


@register_operator("PadImage")
class PadImage(Padding):
    """X: (N, C, H, W) -> Y with padding; see Padding.

    Follows PadImageOp, caffe2/operators/pad_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        y = self.padded(channels_first(self.x(0), self.order))
        self.put(0, channels_last(y, self.order))


@register_operator("PadImageGradient")
class PadImageGradient(Padding):
    """dY -> dX: gradients of the padding are added to the elements it was copied from."""

    def RunOnDevice(self) -> None:
        dy = channels_first(self.x(0), self.order)
        left, right, top, bottom = self.sides
        n, c, height, width = dy.shape
        self.value = -1.0  # not an index
        sizes = (height - top - bottom, width - left - right)
        self.enforce(min(sizes) > 0, "dY is larger than the pads", dy, self.pads)
        places = torch.arange(sizes[0] * sizes[1], dtype=torch.float64).view(1, 1, *sizes)
        index = self.padded(places).long().view(-1)
        kept = index >= 0
        dx = dy.new_zeros(n, c, sizes[0] * sizes[1])
        dx.index_add_(2, index[kept], dy.flatten(2)[:, :, kept])
        self.put(0, channels_last(dx.view(n, c, *sizes), self.order))
