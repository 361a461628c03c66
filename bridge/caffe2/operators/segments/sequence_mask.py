# SPDX-License-Identifier: Apache-2.0
"""SequenceMask: elements of sequences masked."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.definitions.argument_values import MakeArgument
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import INT32, axis_from_front, require


def _sequence_mask_gradient(maker: GradientMaker) -> None:
    inputs = [maker.GO(0), *maker.op.input[1:2]]
    operator = maker.add("SequenceMask", inputs, [maker.GI(0)])
    operator.arg.append(MakeArgument("grad", 1))


@operator("SequenceMask", types={"given": INT32}, gradient=_sequence_mask_gradient)
def sequence_mask(
    x: Tensor,
    given: Tensor | None = None,
    *,
    mode: str = "",
    axis: int = 1,
    batch: int | None = None,
    repeat_from_axis: int | None = None,
    radius: int = 10,
    fill_val: float = -math.inf,
    grad: bool = False,
) -> Tensor:
    """Set masked elements of the rows of a tensor to `fill_val`.

    `mode` is sequence: from the length of the row on, input 1; window: farther than `radius` from
    the center, input 1; upper, lower, upperdiag, lowerdiag: above or below the diagonal, exclusive
    or inclusive. Rows are the dimensions before `axis`, or from `batch` to it; columns end before
    `repeat_from_axis`.
    """
    axis = axis_from_front(axis, x.dim())
    rows, columns = math.prod(x.shape[:axis]), math.prod(x.shape[axis:])
    batches = inner = 1
    if batch is not None:
        batch = axis_from_front(batch, x.dim())
        require(batch < axis, "batch is less than axis", batch, axis)
        batches = math.prod(x.shape[: batch + 1])
        rows //= max(batches, 1)
    if repeat_from_axis is not None:
        fits = mode == "sequence" and batch is None
        require(fits, "repeat_from_axis goes with the mode sequence, without batch", mode)
        repeat = axis_from_front(repeat_from_axis, x.dim())
        require(repeat >= axis, "repeat_from_axis is at least axis", repeat, axis)
        inner, columns = math.prod(x.shape[repeat:]), math.prod(x.shape[axis:repeat])
    i = torch.arange(rows, device=x.device)[:, None]
    j = torch.arange(columns, device=x.device)
    if mode in ("sequence", "window"):
        require(given is not None, f"there is an input 1 for the mode {mode}")
        assert given is not None
        require(given.numel() >= rows, f"input 1 has an element for each of {rows} rows", given)
        ends = given.reshape(-1)[:rows, None]
        outside = j >= ends if mode == "sequence" else (j - ends).abs() > radius
    else:
        fits = mode in ("upper", "lower", "upperdiag", "lowerdiag")
        require(fits, "mode is sequence, window, upper, lower, upperdiag or lowerdiag", mode)
        upper = j > i if mode == "upper" else j >= i
        lower = j < i if mode == "lower" else j <= i
        outside = upper if mode.startswith("upper") else lower
    parts = x.reshape(batches, rows, columns, inner)
    return parts.masked_fill(outside[:, :, None], 0.0 if grad else fill_val).reshape(x.shape)
