# SPDX-License-Identifier: Apache-2.0
"""Caffe2's older broadcasting, by the arguments `broadcast` and `axis`.

Follows caffe2/operators/elementwise_ops.h and elementwise_ops_utils.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


class LegacyBroadcast(FloatOperator):
    """An operator with the arguments `broadcast`, `axis`, `axis_str` and `order`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._legacy = self.GetSingleArgument("broadcast", False)
        self._axis = self.GetSingleArgument("axis", -1)
        if self._legacy and self.HasArgument("axis_str"):
            name = self.GetSingleArgument("axis_str", "")
            order = self.GetSingleArgument("order", "NCHW")
            if not name:
                return
            enforce(self._axis == -1, "The arguments axis and axis_str exclude each other.")
            enforce(len(name) == 1 and name in order, f"The axis {name!r} is not one of {order!r}.")
            self._axis = order.index(name)

    def aligned(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return input 1 with dimensions of size 1, so that it broadcasts as it is to.

        Raises EnforceNotMet: its sizes are not those of the dimensions that it stands for. Sizes
        of 1 at its ends are stretched, others are not.
        """
        if b.numel() == 1:
            return b.reshape(())
        spare = a.dim() - b.dim()
        axis = spare if self._axis == -1 else self._axis
        if spare < 0 or not 0 <= axis <= spare:
            raise EnforceNotMet(
                f"Sizes {list(b.shape)} do not fit into {list(a.shape)} from axis {axis} on.",
                condition="axis >= 0 && axis <= A.dim() - B.dim()",
            )
        sizes = list(b.shape)
        inner = [i for i, size in enumerate(sizes) if size != 1]
        for i in range(inner[0], inner[-1] + 1) if inner else ():
            if a.size(axis + i) != sizes[i]:
                raise EnforceNotMet(
                    f"Sizes {sizes} do not match {list(a.shape)} from axis {axis} on.",
                    condition="A.size(i + axis) == B.size(i)",
                )
        return b.reshape([1] * axis + sizes + [1] * (spare - axis))
