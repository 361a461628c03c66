# SPDX-License-Identifier: Apache-2.0
"""Gradients of Add, Sub, Mul and Div: dA and dB, each summed over the broadcast dimensions.

Follows BinaryElementwiseWithArgsGradientOp, caffe2/operators/elementwise_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import contextlib
import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import NUMBERS, broadcast_sizes, has_values, require
from bridge.caffe2.operators.elementwise.legacy_broadcast import Broadcast


def _wide(
    dc: Tensor, a: Tensor, b: Tensor, broadcast: Broadcast, out: Out = None
) -> tuple[Tensor, Tensor, Out]:
    """Return B as a view that broadcasts with A, dC in the shape of both, and `out`.

    dC may have another shape with as many elements; `out` is left out then.
    """
    wide = broadcast.view(a, b)
    shape: tuple[int, ...] = (-1,)  # which no tensor has
    with contextlib.suppress(RuntimeError):
        shape = broadcast_sizes(a.shape, wide.shape)
    if shape == dc.shape:
        return wide, dc, out
    require(math.prod(shape) == dc.numel(), "A and B broadcast to the shape of dC", a, b, dc)
    return wide, dc.reshape(shape), None


def _folded(gradient: Tensor, wide: Tensor, shape: torch.Size, dc: Tensor) -> Tensor:
    """Return a gradient summed to the shape of `wide`, in `shape`; always a new tensor."""
    if gradient.shape != wide.shape:
        found = gradient.sum_to_size(wide.shape)
        gradient = found if found.dtype == dc.dtype else found.to(dc.dtype)
    elif gradient is dc:
        gradient = dc.clone()
    return gradient.view(shape)


def _is_plain(out: Out, a: Tensor, b: Tensor) -> bool:
    """Return whether the results can be written to `out`: nothing is broadcast."""
    return out is not None and a.shape == b.shape


@operator("AddGradient", inplace="0>0,0>1", types=NUMBERS)
def add_gradient(
    dc: Tensor, a: Tensor, b: Tensor, *, broadcast: Broadcast, out: Out = None
) -> tuple[Tensor, Tensor]:
    """dA = dC, dB = dC."""
    wide, dc, out = _wide(dc, a, b, broadcast, out)
    if _is_plain(out, a, b):
        da, db = (one if one is dc else one.copy_(dc) for one in out)
        return da, db
    return _folded(dc, a, a.shape, dc), _folded(dc, wide, b.shape, dc)


@operator("SubGradient", inplace="0>0,0>1", types=NUMBERS)
def sub_gradient(
    dc: Tensor, a: Tensor, b: Tensor, *, broadcast: Broadcast, out: Out = None
) -> tuple[Tensor, Tensor]:
    """dA = dC, dB = -dC."""
    wide, dc, out = _wide(dc, a, b, broadcast, out)
    if _is_plain(out, a, b):
        da = out[0] if out[0] is dc else out[0].copy_(dc)
        return da, torch.neg(dc, out=out[1])
    return _folded(dc, a, a.shape, dc), _folded(-dc, wide, b.shape, dc)


@operator("MulGradient", inplace="0>0,0>1", types=NUMBERS)
def mul_gradient(
    dc: Tensor, a: Tensor, b: Tensor, *, broadcast: Broadcast, out: Out = None
) -> tuple[Tensor, Tensor]:
    """dA = dC * B, dB = dC * A."""
    wide, dc, out = _wide(dc, a, b, broadcast, out)
    if _is_plain(out, a, b):
        if out[1] is dc:
            return torch.mul(dc, b, out=out[0]), torch.mul(dc, a, out=out[1])
        db = torch.mul(dc, a, out=out[1])
        return torch.mul(dc, b, out=out[0]), db
    return _folded(dc * wide, a, a.shape, dc), _folded(dc * a, wide, b.shape, dc)


@operator("DivGradient", inplace="0>0", types=NUMBERS)
def div_gradient(
    dc: Tensor, a: Tensor, b: Tensor, c: Tensor | None = None, *, broadcast: Broadcast
) -> tuple[Tensor, Tensor]:
    """dA = dC / B, dB = -dC * C / B. Without `c` the inputs are (B, C, dC), as in older nets."""
    if c is None:
        dc, a, b = b, a, dc
        c = a
    wide, dc, _ = _wide(dc, a, b, broadcast)
    c = c.reshape(dc.shape)
    if dc.is_floating_point():
        da, db = dc / wide, -dc * c / wide
    else:
        if has_values(b):
            require(bool((b != 0).all()), "no integer is divided by 0")
        da = torch.div(dc, wide, rounding_mode="trunc")
        db = torch.div(-dc * c, wide, rounding_mode="trunc")
    return _folded(da, a, a.shape, dc), _folded(db, wide, b.shape, dc)
