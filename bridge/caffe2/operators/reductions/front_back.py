# SPDX-License-Identifier: Apache-2.0
"""Reductions over the first or the last `num_reduce_dim` dimensions, and their gradients.

The optional input `lengths` says how many elements count for each result, at least one; only as
many of each row or column have a gradient. SumReduceLike is over the dimensions that broadcast.
Follows caffe2/operators/reduce_front_back_sum_mean_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.operators.base.checks import FLOATS, INT32, NUMBERS, require, require_all
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few
from bridge.caffe2.operators.base.gradients import extreme_over
from bridge.caffe2.operators.elementwise.binary import aligned, axis_of
from bridge.caffe2.operators.movement import row_kernels

_FLOAT_TYPES = {"lengths": INT32}
_TYPES = {"x": NUMBERS, "lengths": INT32}


def _as_matrix(x: Tensor, n: int, front: bool) -> tuple[Tensor, torch.Size]:
    """Return X as a matrix, to reduce along dimension 0 or 1, and the sizes of the result."""
    require(0 <= n <= x.dim(), f"num_reduce_dim is at most {x.dim()}, the dimensions of X", n)
    split = n if front else x.dim() - n
    kept = x.shape[split:] if front else x.shape[:split]
    return x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:])), kept


def _counting(matrix: Tensor, lengths: Tensor, n: int, front: bool, other: float) -> Tensor:
    """Return the matrix with elements beyond their lengths replaced by `other`."""
    along = 0 if front else 1
    count = matrix.shape[along]
    require(n == 1, "num_reduce_dim is 1 with lengths", n)
    require(lengths.numel() == matrix.shape[1 - along], "there is one length per result", lengths)
    require_all(lengths <= count, f"lengths are at most {count}", lengths)
    places = torch.arange(count, device=matrix.device).unsqueeze(1 - along)
    return matrix.masked_fill(places >= lengths.clamp(min=1).reshape(-1).unsqueeze(along), other)


def _total(x: Tensor, lengths: Tensor | None, n: int, front: bool, out: Out) -> Tensor:
    if front and n == 1 and lengths is None and x.dim():
        return torch.sum(x, 0, dtype=x.dtype, out=out)
    matrix, kept = _as_matrix(x, n, front)
    if lengths is not None and x.numel():
        matrix = _counting(matrix, lengths, n, front, 0)
    dim = 0 if front else 1
    if out is None:
        return torch.sum(matrix, dim, dtype=x.dtype).view(kept)
    torch.sum(matrix, dim, dtype=x.dtype, out=out.view(-1))
    return out


@operator("ReduceFrontSum", types=_TYPES, gradient="$Gradient g0 i0 i1? > 0")
@operator("ReduceBackSum", types=_TYPES, gradient="$Gradient g0 i0 i1? > 0")
@operator("ReduceFrontMean", types=_TYPES, gradient="$Gradient g0 i0 i1? > 0")
@operator("ReduceBackMean", types=_TYPES, gradient="$Gradient g0 i0 i1? > 0")
def reduce(
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    num_reduce_dim: int = 1,
    kind: OperatorType,
    out: Out = None,
) -> Tensor:
    """Sums, or means, over the first or the last dimensions; of integers, rounded towards zero."""
    n, front = num_reduce_dim, "Front" in kind
    if "Sum" in kind:
        return _total(x, lengths, n, front, out)
    dim = 0 if front else 1
    matrix, kept = _as_matrix(x, n, front)
    if not x.numel():
        return x.new_zeros(kept)
    if lengths is None and x.is_floating_point():
        if out is None:
            return torch.mean(matrix, dim).view(kept)
        torch.mean(matrix, dim, out=out.view(-1))
        return out
    total = _total(x, lengths, n, front, None)
    if lengths is None:
        return torch.div(total, matrix.shape[dim], rounding_mode="trunc", out=out)
    if x.is_floating_point():
        return torch.div(total, lengths.view(kept), out=out)
    require_all(lengths > 0, "no mean is of no integers", lengths)
    return torch.div(total, lengths.view(kept), rounding_mode="trunc").to(x.dtype)


@operator("ReduceFrontMax", types=_FLOAT_TYPES, gradient="$Gradient g0 i0 o0 i1? > 0")
@operator("ReduceBackMax", types=_FLOAT_TYPES, gradient="$Gradient g0 i0 o0 i1? > 0")
def reduce_max(
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    num_reduce_dim: int = 1,
    kind: OperatorType,
    out: Out = None,
) -> Tensor:
    """The maxima over the first or the last dimensions."""
    front = kind == "ReduceFrontMax"
    matrix, kept = _as_matrix(x, num_reduce_dim, front)
    if not x.numel():
        return x.new_zeros(kept)
    if lengths is not None:
        matrix = _counting(matrix, lengths, num_reduce_dim, front, float("-inf"))
    dims = (0 if front else 1,)
    if out is None:
        return extreme_over(matrix, dims, False).view(kept)
    extreme_over(matrix, dims, False, out=out.view(-1))
    return out


_GRADIENT_TYPES = {"dy": NUMBERS, "x": None, "lengths": INT32}


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


@operator("ReduceFrontSumGradient", types=_GRADIENT_TYPES)
@operator("ReduceBackSumGradient", types=_GRADIENT_TYPES)
@operator("ReduceFrontMeanGradient", types=_GRADIENT_TYPES)
@operator("ReduceBackMeanGradient", types=_GRADIENT_TYPES)
def reduce_gradient(
    dy: Tensor,
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    num_reduce_dim: int = 1,
    kind: OperatorType,
    out: Out = None,
) -> Tensor:
    """(dY, X or its sizes as 1-d int64, optionally lengths) -> dX of sums, or of means."""
    front, mean = "Front" in kind, "Mean" in kind
    plain = front and not mean and lengths is None and num_reduce_dim == 1
    if plain and x.is_floating_point() and x.dim() and x.shape[1:] == dy.shape:
        if takes_few(x, dy):
            made = torch.empty_like(x) if out is None else out
            return run_kernel(row_kernels.repeat, made, dy, x.shape[0], dy.numel())
        return dy.expand(x.shape).clone(memory_format=torch.contiguous_format)
    sizes = list(x.shape)
    if x.dim() == 1 and x.dtype == torch.int64:
        sizes = x.tolist()
        require(all(size >= 0 for size in sizes), "sizes are not negative", sizes)
    spread = _spread(dy, sizes, lengths, num_reduce_dim, front, mean).reshape(sizes)
    return spread.to(dy.dtype).clone(memory_format=torch.contiguous_format)


@operator("ReduceFrontMaxGradient", types=_FLOAT_TYPES)
@operator("ReduceBackMaxGradient", types=_FLOAT_TYPES)
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


@operator(
    "ReduceFrontWeightedSum",
    gradient="Shape i0 > _o0+_dims; ReduceFrontWeightedSumGradient i1 g0 _o0+_dims > 0",
)
def reduce_front_weighted_sum(x: Tensor, weights: Tensor, *, num_reduce_dim: int = 1) -> Tensor:
    """The sum of the rows of X times the weights."""
    n = num_reduce_dim
    require(0 <= n <= x.dim(), f"num_reduce_dim is at most {x.dim()}, the dimensions of X", n)
    rows = x.reshape(math.prod(x.shape[:n]), math.prod(x.shape[n:]))
    fits = weights.dim() == n and weights.numel() == rows.shape[0]
    require(
        fits, "there is one weight per row, in as many dimensions as are reduced", weights, rows
    )
    return torch.sum(rows * weights.reshape(-1, 1), 0).reshape(x.shape[n:])


@operator("SumReduceLike", types={"a": FLOATS, "b": None}, rearranges=())
def sum_reduce_like(
    a: Tensor,
    b: Tensor,
    *,
    broadcast: bool = False,
    axis: int = -1,
    axis_str: str = "",
    order: str = "NCHW",
) -> Tensor:
    """A summed to the sizes of B, which broadcasts as in `elementwise.binary`."""
    axis = axis_of(axis, axis_str, order)
    if b.numel() == 1:
        return a.sum().reshape(b.shape)
    like = aligned(a, b, axis).shape
    like = (1,) * (a.dim() - len(like)) + like
    over = [dim for dim in range(a.dim()) if like[dim] == 1 and a.shape[dim] != 1]
    return (a.sum(over) if over else a.clone()).reshape(b.shape)
