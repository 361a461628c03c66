# SPDX-License-Identifier: Apache-2.0
"""Reductions over the dimensions in `axes`, all by default, kept with size 1 with `keepdims`.

The gradients are (dY, X, Y) -> dX, but that of Moments, the mean and the variance.
Follows reduce_ops.h and moments_op.h in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.operators.base.checks import NUMBERS, axis_from_front, require
from bridge.caffe2.operators.base.gradients import extreme_over


def _dims(x: Tensor, axes: list[int] | None) -> list[int]:
    """Return the dimensions to reduce, counted from the front."""
    return sorted({axis_from_front(axis, x.dim()) for axis in axes or range(x.dim())})


@operator("ReduceSum", types=NUMBERS, gradient="$Gradient g0 i0 o0 > 0")
def reduce_sum(
    x: Tensor, *, axes: list[int] | None = None, keepdims: bool = True, out: Out = None
) -> Tensor:
    """Sums."""
    return torch.sum(x, _dims(x, axes), keepdims, dtype=x.dtype, out=out)


@operator("ReduceMean", gradient="$Gradient g0 i0 o0 > 0")
def reduce_mean(
    x: Tensor, *, axes: list[int] | None = None, keepdims: bool = True, out: Out = None
) -> Tensor:
    """Means; of no elements 0."""
    dims = _dims(x, axes)
    if not x.numel():
        return torch.sum(x, dims, keepdims)
    return torch.mean(x, dims, keepdims, out=out)


@operator("ReduceMax", types=NUMBERS, gradient="$Gradient g0 i0 o0 > 0")
@operator("ReduceMin", types=NUMBERS, gradient="$Gradient g0 i0 o0 > 0")
def reduce_extreme(
    x: Tensor,
    *,
    axes: list[int] | None = None,
    keepdims: bool = True,
    kind: OperatorType,
    out: Out = None,
) -> Tensor:
    """The maxima or minima; of no elements the opposite limit of the type."""
    dims, greatest = _dims(x, axes), kind == "ReduceMax"
    if x.numel():
        return extreme_over(x, dims, keepdims, greatest, out)
    info = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
    nothing = torch.sum(x, dims, keepdims, dtype=x.dtype)
    return torch.full_like(nothing, info.min if greatest else info.max)


@operator("ReduceL1", gradient="$Gradient g0 i0 o0 > 0")
def reduce_l1(
    x: Tensor, *, axes: list[int] | None = None, keepdims: bool = True, out: Out = None
) -> Tensor:
    """Sums of absolute values."""
    return torch.sum(torch.abs(x), _dims(x, axes), keepdims, out=out)


@operator("ReduceL2", gradient="$Gradient g0 i0 o0 > 0")
def reduce_l2(
    x: Tensor, *, axes: list[int] | None = None, keepdims: bool = True, out: Out = None
) -> Tensor:
    """Square roots of sums of squares."""
    return torch.linalg.vector_norm(x, 2, _dims(x, axes), keepdims, out=out)


def kept_sizes(x: Tensor, axes: list[int] | None) -> list[int]:
    """Return the sizes of X with 1 for the dimensions `axes`, by default all."""
    named = range(x.dim()) if axes is None else axes
    over = {axis_from_front(axis, x.dim()) for axis in named}
    return [1 if i in over else size for i, size in enumerate(x.shape)]


def _declare_gradient(
    name: str, formula: str, slope: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> None:
    """Declare dX = `slope`(dY, X, Y), where dY and Y have sizes that broadcast with X."""

    def compute(dy: Tensor, x: Tensor, y: Tensor, *, axes: list[int] | None = None) -> Tensor:
        sizes = kept_sizes(x, axes)
        require(dy.numel() == y.numel(), "dY has the shape of Y", dy, y)
        return slope(dy.reshape(sizes), x, y.reshape(sizes))

    compute.__doc__ = f"dX = {formula}."
    compute.__name__ = compute.__qualname__ = f"{name.lower()}_gradient"
    operator(f"{name}Gradient", types=NUMBERS)(compute)


def _spread(dy: Tensor, x: Tensor) -> Tensor:
    return dy.expand(x.shape).clone(memory_format=torch.contiguous_format)


_declare_gradient("ReduceSum", "dY", lambda dy, x, y: _spread(dy, x))
_declare_gradient(
    "ReduceMean",
    "dY / the number of elements",
    lambda dy, x, y: _spread(dy * (y.numel() / max(x.numel(), 1)), x),
)
for _name in ("ReduceMax", "ReduceMin"):
    _declare_gradient(_name, "dY where X equals Y, else 0", lambda dy, x, y: dy * (x == y))
_declare_gradient("ReduceL1", "dY * sign(X)", lambda dy, x, y: dy * torch.sign(x))
_declare_gradient(
    "ReduceL2",
    "dY * X / Y; where Y is 0 it is dY, as in Caffe2",
    lambda dy, x, y: torch.where(y > 0, dy * x / y, dy),
)


@operator("Moments", gradient="$Gradient g0 g1 i0 o0 > 0")
def moments(
    x: Tensor, *, axes: list[int] | None = None, keepdims: int = 1
) -> tuple[Tensor, Tensor]:
    """X -> mean, variance over `axes`, by default all; both are 0 for no elements.

    Follows MomentsOp, caffe2/operators/moments_op.h, PyTorch 1.8.1.
    """
    require(axes is None or all(axis >= 0 for axis in axes), "axes are not negative", axes)
    named = axes or range(x.dim())
    dims = sorted({axis_from_front(axis, x.dim()) for axis in named})
    if not dims:
        return x.clone(), torch.zeros_like(x)
    keep = bool(keepdims)
    if not x.numel():
        return x.sum(dims, keep), x.sum(dims, keep)
    mean = torch.mean(x, dims, True)
    variance = torch.mean(torch.square(x - mean), dims, keep)
    return mean if keep else mean.reshape(variance.shape), variance


@operator("MomentsGradient")
def moments_gradient(
    dmean: Tensor, dvariance: Tensor, x: Tensor, mean: Tensor, *, axes: list[int] | None = None
) -> Tensor:
    """(dmean, dvariance, X, mean) -> dX."""
    require(axes is None or all(axis >= 0 for axis in axes), "axes are not negative", axes)
    sizes = kept_sizes(x, axes or None)
    dmean, dvariance, mean = (one.reshape(sizes) for one in (dmean, dvariance, mean))
    share = mean.numel() / max(x.numel(), 1)
    return (dmean + 2 * (x - mean) * dvariance) * share
