# SPDX-License-Identifier: Apache-2.0
"""Operators that return the sizes of a tensor: Shape, Size, IsEmpty, HasElements."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import require


@operator("Shape", types=None, rearranges=(), gradient="undefined")
def shape(x: Tensor, *, axes: list[int] | None = None, out: Out = None) -> Tensor:
    """The sizes of X, or those of the dimensions `axes`, int64."""
    for axis in axes or ():
        require(0 <= axis < x.dim(), f"axes are from 0 to below {x.dim()}", axis)
    found = [x.shape[axis] for axis in axes] if axes else list(x.shape)
    result: Tensor = torch.tensor(found, dtype=torch.int64, device=x.device)
    return result if out is None else out.copy_(result)


@operator("Size", types=None, rearranges=(), gradient="none")
def size(x: Tensor, *, out: Out = None) -> Tensor:
    """The number of elements of X, int64 without dimensions."""
    return _number(x, x.numel(), torch.int64, out)


def _number(x: Tensor, value: int, dtype: torch.dtype, out: Out) -> Tensor:
    """Return a number without dimensions, where X is."""
    return torch.full((), value, dtype=dtype, device=x.device) if out is None else out.fill_(value)


@operator("IsEmpty", types=None, rearranges=(), gradient="undefined")
def is_empty(x: Tensor, *, out: Out = None) -> Tensor:
    """Whether X has no elements."""
    return _number(x, x.numel() == 0, torch.bool, out)


@operator("HasElements", types=None, inputs="1-*", rearranges=(), gradient="undefined")
def has_elements(*xs: Tensor, out: Out = None) -> Tensor:
    """Whether any input has elements."""
    return _number(xs[0], any(x.numel() > 0 for x in xs), torch.bool, out)
