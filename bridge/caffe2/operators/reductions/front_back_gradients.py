# SPDX-License-Identifier: Apache-2.0
"""Gradients of reductions over the first or the last `num_reduce_dim` dimensions.

With lengths only as many elements of each row or column have a gradient.
Follows caffe2/operators/reduce_front_back_sum_mean_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.operators.base.checks import INT32, NUMBERS, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few
from bridge.caffe2.operators.movement import row_kernels

_TYPES = {"dy": NUMBERS, "x": None, "lengths": INT32}
_MAX_TYPES = {"lengths": INT32}


def _spread(
    dy: Tensor, sizes: Sequence[int], lengths: Tensor | None, n: int, front: bool, mean: bool
) -> Tensor:
    """Return dY, divided for a mean, as a matrix with the elements of X, a view if it can be."""
    require(0 <= n <= len(sizes), "num_reduce_dim is at most the number of dimensions", n, sizes)
    split = n if front else len(sizes) - n
    matrix = (math.prod(sizes[:split]), math.prod(sizes[split:]))
    along = 0 if front else 1
    count = matrix[along]
    require(dy.numel() == matrix[1 - along], "there is one gradient per element of Y", dy, sizes)
    spread = dy.reshape(-1).unsqueeze(along).expand(matrix)
    rounding = None if dy.is_floating_point() else "trunc"
    if lengths is not None:
        lengths = lengths.reshape(-1).unsqueeze(along)
        inside = torch.arange(count, device=dy.device).unsqueeze(1 - along) < lengths
        spread = spread * inside
        if mean:  # A row of length 0 stays 0.
            spread = spread.div(lengths.clamp(min=1), rounding_mode=rounding)
    elif mean and count:
        spread = spread.div(count, rounding_mode=rounding)
    return spread


def _back(dy: Tensor, x: Tensor, lengths: Tensor | None, n: int, front: bool, mean: bool) -> Tensor:
    """Return dX; `x` is X, or the sizes of X as 1-d int64."""
    sizes = list(x.shape)
    if x.dim() == 1 and x.dtype == torch.int64:
        sizes = x.tolist()
        require(all(size >= 0 for size in sizes), "sizes are not negative", sizes)
    spread = _spread(dy, sizes, lengths, n, front, mean).reshape(sizes)
    return spread.to(dy.dtype).clone(memory_format=torch.contiguous_format)


@operator("ReduceFrontSumGradient", types=_TYPES)
def reduce_front_sum_gradient(
    dy: Tensor,
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    num_reduce_dim: int = 1,
    out: Out = None,
) -> Tensor:
    """(dY, X or its sizes, optionally lengths) -> dX of sums over the first dimensions."""
    plain = lengths is None and num_reduce_dim == 1 and x.is_floating_point()
    if plain and x.dim() and x.shape[1:] == dy.shape:
        if takes_few(x, dy):
            made = torch.empty_like(x) if out is None else out
            return run_kernel(row_kernels.repeat, made, dy, x.shape[0], dy.numel())
        return dy.expand(x.shape).clone(memory_format=torch.contiguous_format)
    return _back(dy, x, lengths, num_reduce_dim, True, False)


@operator("ReduceBackSumGradient", types=_TYPES)
def reduce_back_sum_gradient(
    dy: Tensor, x: Tensor, lengths: Tensor | None = None, *, num_reduce_dim: int = 1
) -> Tensor:
    """(dY, X or its sizes, optionally lengths) -> dX of sums over the last dimensions."""
    return _back(dy, x, lengths, num_reduce_dim, False, False)


@operator("ReduceFrontMeanGradient", types=_TYPES)
@operator("ReduceBackMeanGradient", types=_TYPES)
def reduce_mean_gradient(
    dy: Tensor,
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    num_reduce_dim: int = 1,
    kind: OperatorType,
) -> Tensor:
    """(dY, X or its sizes, optionally lengths) -> dX of means."""
    return _back(dy, x, lengths, num_reduce_dim, kind == "ReduceFrontMeanGradient", True)


@operator("ReduceFrontMaxGradient", types=_MAX_TYPES)
@operator("ReduceBackMaxGradient", types=_MAX_TYPES)
def reduce_max_gradient(
    dy: Tensor,
    x: Tensor,
    y: Tensor,
    lengths: Tensor | None = None,
    *,
    num_reduce_dim: int = 1,
    kind: OperatorType,
) -> Tensor:
    """(dY, X, Y, optionally lengths) -> dX of maxima: dY where X equals Y, else 0."""
    front = kind == "ReduceFrontMaxGradient"
    spread = _spread(dy, x.shape, lengths, num_reduce_dim, front, False)
    chosen = x.reshape(spread.shape) == y.reshape(-1).unsqueeze(0 if front else 1)
    return (spread * chosen).reshape(x.shape)
