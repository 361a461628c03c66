# SPDX-License-Identifier: Apache-2.0
"""Dropout and its gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, OutputCount, RandomGenerator, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import add_pattern
from bridge.caffe2.operators.base.checks import BOOL, require
from bridge.caffe2.operators.base.defined_mode import DefinedMode, first_buffer


def _dropout_gradient(maker: GradientMaker) -> None:
    maker.enforce(maker.has_argument("is_test"), "needs argument 'is_test'")
    is_test = maker.argument("is_test", 0)
    add_pattern("DropoutGrad g0 > 0" if is_test else "DropoutGrad g0 o1 > 0", maker)


@operator("Dropout", inplace="0>0", outputs="1-2", effects=("random",), gradient=_dropout_gradient)
def dropout(
    x: Tensor,
    *,
    is_test: int,
    ratio: float = 0.5,
    defined: DefinedMode | None = None,
    generator: RandomGenerator = None,
    outputs: OutputCount = 2,
    out: Out = None,
) -> tuple[Tensor, Tensor | None]:
    """Y = X in test; in training X / (1 - ratio) or, with probability `ratio`, 0.

    X -> Y, and in training a bool mask, True where X was kept. `is_test` is required.
    Follows DropoutOp, caffe2/operators/dropout_op.cc, PyTorch 1.8.1.
    """
    require(0 <= ratio < 1, "ratio is in [0, 1)", ratio)
    room = first_buffer(out)
    if is_test:
        return x if room is None or room is x else room.copy_(x), None
    has_room = outputs in (0, 2) or (defined is not None and defined.is_test)
    require(has_room, "in training there is an output for the mask", outputs)
    mask = torch.rand(x.shape, generator=generator, dtype=x.dtype, device=x.device) >= ratio
    return torch.mul(x * mask, 1 / (1 - ratio), out=room), mask


@operator("DropoutGrad", inplace="0>0", types={"mask": BOOL}, defaults=dropout)
def dropout_grad(
    dy: Tensor, mask: Tensor | None = None, *, is_test: int = 0, ratio: float, out: Out = None
) -> Tensor:
    """dX = dY in test; in training (dY, mask) -> dY / (1 - ratio) where it was kept, else 0."""
    require(0 <= ratio < 1, "ratio is in [0, 1)", ratio)
    if is_test:
        return dy if out is None or out is dy else out.copy_(dy)
    require(mask is not None, "in training the mask is given")
    assert mask is not None
    require(mask.numel() == dy.numel(), "the mask has the shape of dY", mask, dy)
    return torch.mul(dy * mask.view(dy.shape), 1 / (1 - ratio), out=out)
