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
    """An operator with the arguments `broadcast`, `axis`, `axis_str` and `order`.

    With `broadcast` the dimensions of input 1 are the last ones of input 0, or those from `axis`
    on.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._legacy = self.GetSingleArgument("broadcast", False)
        self._axis = self.GetSingleArgument("axis", -1)
        if self._legacy:
            self.read_axis_str()

    def read_axis_str(self) -> None:
        """Set the axis to the one named by the arguments `axis_str` and `order`, if they are set.

        Raises EnforceNotMet: there is no such axis, or `axis` is set, too.
        """
        name = self.GetSingleArgument("axis_str", "")
        order = self.GetSingleArgument("order", "NCHW")
        if name:
            enforce(self._axis == -1, "The arguments axis and axis_str exclude each other.")
            enforce(len(name) == 1 and name in order, f"The axis {name!r} is not one of {order!r}.")
            self._axis = order.index(name)

    def aligned(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return a view of input 1, `b`, that broadcasts with input 0, `a`, as in NumPy.

        Raises EnforceNotMet: its sizes differ from those of the matching dimensions of input 0.
        Leading and trailing sizes of 1 are stretched, others are not.
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
