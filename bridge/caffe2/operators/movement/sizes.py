# SPDX-License-Identifier: Apache-2.0
"""Operators that return the sizes of a tensor: Shape, Size, IsEmpty, HasElements."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.execution.declaration import Out

__all__: list[str] = []


@operator("Shape", types=None, rearranges=(), gradient="undefined")
def shape(x: Tensor, *, axes: list[int] | None = None, out: Out = None) -> Tensor:
    """The sizes of X, or those of the dimensions `axes`, int64."""
    for axis in axes or ():
        require(0 <= axis < x.dim(), f"axes are from 0 to below {x.dim()}", axis)
    found = [x.shape[axis] for axis in axes] if axes else list(x.shape)
    result: Tensor = torch.tensor(found, dtype=torch.int64, device=x.device)
    return result if out is None else out.copy_(result)


@operator("Size", types=None, rearranges=(), gradient="none")
def size(x: Tensor) -> Tensor:
    """The number of elements of X, int64 without dimensions."""
    return torch.tensor(x.numel(), dtype=torch.int64, device=x.device)


@operator("IsEmpty", types=None, rearranges=(), gradient="undefined")
def is_empty(x: Tensor) -> Tensor:
    """Whether X has no elements."""
    return torch.tensor(x.numel() == 0, dtype=torch.bool, device=x.device)


@operator("HasElements", types=None, inputs="1-*", rearranges=(), gradient="undefined")
def has_elements(*xs: Tensor) -> Tensor:
    """Whether any input has elements."""
    some = any(x.numel() > 0 for x in xs)
    return torch.tensor(some, dtype=torch.bool, device=xs[0].device)
