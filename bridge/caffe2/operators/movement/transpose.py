# SPDX-License-Identifier: Apache-2.0
"""Operators that reorder the dimensions of a tensor."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import NUMBERS, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("Transpose")
class Transpose(TorchOperator):
    """The dimensions in the order `axes`, by default reversed."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._axes = self.GetRepeatedArgument("axes")
        enforce(
            sorted(self._axes) == list(range(len(self._axes))),
            f"The axes {self._axes} are not a permutation of 0 to {len(self._axes) - 1}.",
        )

    def RunOnDevice(self) -> None:
        x = self.x(0, NUMBERS)
        axes = self._axes or list(reversed(range(x.dim())))
        enforce(
            len(axes) == x.dim(),
            f"There are {len(axes)} axes, but input 0 has {x.dim()} dimensions.",
        )
        self.put(0, x.permute(axes).clone(memory_format=torch.contiguous_format))


class _Order(TorchOperator):
    """An image with its channels moved."""

    first = True

    def RunOnDevice(self) -> None:
        x = self.x(0, (c10.float32,))
        enforce(x.dim() >= 3, f"Input 0 must have three dimensions or more, not {x.dim()}.")
        moved = x.movedim(1, -1) if self.first else x.movedim(-1, 1)
        self.put(0, moved.clone(memory_format=torch.contiguous_format))


@register_operator("NCHW2NHWC")
class NCHW2NHWC(_Order):
    """Move the channels from the second to the last dimension."""


@register_operator("NHWC2NCHW")
class NHWC2NCHW(_Order):
    """Move the channels from the last to the second dimension."""

    first = False
