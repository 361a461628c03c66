# SPDX-License-Identifier: Apache-2.0
"""Linear algebra functions of the array API standard that are in its main namespace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from bridge.at.array_api.running import agreed, axes_of, on_memory
from bridge.at.tensor import Tensor

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


@on_memory
def matmul(x1: torch.Tensor, x2: torch.Tensor, /) -> torch.Tensor:
    """Return the products of matrices, or of a matrix and a vector."""
    return torch.matmul(*agreed(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Return a view with the last two dimensions swapped. Raises ValueError: there are fewer."""
    if x.ndim < 2:
        raise ValueError(f"A matrix has two dimensions; the array has {x.ndim}.")
    return x.transpose(-1, -2)


@on_memory
def tensordot(
    x1: torch.Tensor, x2: torch.Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Any:
    """Return the sums of products along `axes` of both: the last and first, or pairs of lists."""
    x1, x2 = agreed(x1, x2)
    if isinstance(axes, int):
        return torch.tensordot(x1, x2, dims=axes)
    first, second = axes
    return torch.tensordot(
        x1, x2, dims=(list(axes_of(x1, tuple(first))), list(axes_of(x2, tuple(second))))
    )


@on_memory
def vecdot(x1: torch.Tensor, x2: torch.Tensor, /, *, axis: int = -1) -> torch.Tensor:
    """Return the dot products of vectors along `axis`, the first of them conjugated.

    Raises ValueError: the vectors have other sizes.
    """
    x1, x2 = agreed(x1, x2)
    for x in (x1, x2):
        axes_of(x, axis)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"The vectors have {x1.shape[axis]} and {x2.shape[axis]} elements.")
    x1, x2 = torch.movedim(x1, axis, -1), torch.movedim(x2, axis, -1)
    return torch.sum(torch.conj_physical(x1) * x2, -1, dtype=x1.dtype)
