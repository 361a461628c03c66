# SPDX-License-Identifier: Apache-2.0
"""Caffe2's older broadcasting, by the arguments `broadcast`, `axis`, `axis_str` and `order`.

With `broadcast` the dimensions of input 1 are the last ones of input 0, or those from `axis` on;
`axis_str` names the axis by a letter of `order`.
Follows caffe2/operators/elementwise_ops.h and elementwise_ops_utils.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from torch import Tensor

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.operators.base.checks import require


def axis_of(axis: int, axis_str: str, order: str) -> int:
    """Return `axis`, or the place of the letter `axis_str` in `order`.

    Raises EnforceNotMet: both are given, or there is no such letter.
    """
    if not axis_str:
        return axis
    require(axis == -1, "the arguments axis and axis_str exclude each other", axis, axis_str)
    require(len(axis_str) == 1 and axis_str in order, f"axis_str is one of {order!r}", axis_str)
    return order.index(axis_str)


def aligned(a: Tensor, b: Tensor, axis: int) -> Tensor:
    """Return a view of `b` that broadcasts with `a` as in NumPy; `axis` -1: the last dimensions.

    Leading and trailing sizes of 1 are stretched, others are not.
    Raises EnforceNotMet: the sizes differ from those of the matching dimensions of `a`.
    """
    if b.numel() == 1:
        return b.reshape(())
    spare = a.dim() - b.dim()
    axis = spare if axis == -1 else axis
    if spare < 0 or not 0 <= axis <= spare:
        raise EnforceNotMet(
            f"Sizes {list(b.shape)} do not fit into {list(a.shape)} from axis {axis} on.",
            condition="axis >= 0 && axis <= A.dim() - B.dim()",
        )
    sizes = list(b.shape)
    inner = [i for i, size in enumerate(sizes) if size != 1]
    for i in range(inner[0], inner[-1] + 1) if inner else ():
        if a.shape[axis + i] != sizes[i]:
            raise EnforceNotMet(
                f"Sizes {sizes} do not match {list(a.shape)} from axis {axis} on.",
                condition="A.size(i + axis) == B.size(i)",
            )
    if axis == spare:
        return b
    return b.reshape([1] * axis + sizes + [1] * (spare - axis))


class Broadcast:
    """Whether and where input 1 is broadcast, by the arguments of this module.

    `is_set`: whether by them, and not as in NumPy. Raises EnforceNotMet: with `broadcast`, as
    `axis_of`; for Pow also axes without it.
    """

    takes = "bool broadcast, int axis, str axis_str, str order"

    def __init__(self, arguments: Arguments) -> None:
        self.is_set = arguments.single("broadcast", False)
        axis, axis_str = arguments.single("axis", -1), arguments.single("axis_str", "")
        if self.is_set:
            axis = axis_of(axis, axis_str, arguments.single("order", "NCHW"))
        elif arguments.type == "Pow" and arguments.inputs == 2:
            fits = axis == -1 and not axis_str
            require(fits, "broadcast=1 is set for the arguments axis and axis_str")
        self._axis = axis

    def view(self, a: Tensor, b: Tensor) -> Tensor:
        """Return `b`, or a view of it, that broadcasts with `a` as in NumPy.

        Raises EnforceNotMet: with `broadcast`, the sizes do not match.
        """
        return aligned(a, b, self._axis) if self.is_set else b
