# SPDX-License-Identifier: Apache-2.0
"""Operators that reorder the dimensions of a tensor."""

from __future__ import annotations

from torch import Tensor

from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import NUMBERS, require


def _row_major(x: Tensor, out: Out) -> Tensor:
    """Return a copy of the view `x`."""
    return x.contiguous() if out is None else out.copy_(x)


def _transpose_gradient(maker: GradientMaker) -> None:
    axes = maker.ints("axes")
    operator = maker.add("Transpose", [maker.GO(0)], [maker.GI(0)])
    for argument in operator.arg:
        if argument.name == "axes":
            argument.ints[:] = sorted(range(len(axes)), key=axes.__getitem__)


@operator("Transpose", types=NUMBERS, gradient=_transpose_gradient)
def transpose(data: Tensor, *, axes: list[int] | None = None, out: Out = None) -> Tensor:
    """The dimensions in the order `axes`, by default reversed."""
    axes = axes or list(reversed(range(data.dim())))
    require(
        sorted(axes) == list(range(data.dim())),
        f"the axes are a permutation of those of the data, from 0 to {data.dim() - 1}",
        axes,
    )
    return _row_major(data.permute(axes), out)


@operator("NCHW2NHWC", gradient="NHWC2NCHW g0 > 0")
@operator("NHWC2NCHW", gradient="NCHW2NHWC g0 > 0")
def reorder(data: Tensor, *, kind: OperatorType, out: Out = None) -> Tensor:
    """Move the channels from the second to the last dimension, or back."""
    require(data.dim() >= 3, "the data have at least three dimensions", data)
    places = (1, -1) if kind == "NCHW2NHWC" else (-1, 1)
    return _row_major(data.movedim(*places), out)
