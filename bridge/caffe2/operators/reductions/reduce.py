# SPDX-License-Identifier: Apache-2.0
"""Reductions over the dimensions in `axes`, to one number, to a number per row, and to indices.

All dimensions are the default of `axes`; they are kept with size 1 with `keepdims`. The gradients
are then (dY, X, Y) -> dX, but that of Moments, the mean and the variance. Follows reduce_ops.h,
moments_op.h, distance_op.cc and lpnorm_op.cc in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import FLOATS, INT32, NUMBERS, axis_from_front, require
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
    """X -> mean, variance over `axes`, by default all; both are 0 for no elements."""
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


@operator("RowwiseMax", gradient="$Gradient i0 o0 g0 > 0")
@operator("ColwiseMax", gradient="$Gradient i0 o0 g0 > 0")
def max_along(x: Tensor, *, kind: OperatorType, out: Out = None) -> Tensor:
    """The maxima of rows (batch, m), or of columns (batch, n), of X (batch, m, n)."""
    dim = 2 if kind == "RowwiseMax" else 1
    require(x.dim() == 3, "X has three dimensions", x)
    if x.numel():
        return extreme_over(x, (dim,), False, True, out)
    kept = [size for i, size in enumerate(x.shape) if i != dim]
    require(0 in kept, "no maximum is of no elements", x)
    return x.new_zeros(kept)


@operator("RowwiseMaxGradient")
@operator("ColwiseMaxGradient", inputs="0-*", outputs="0-*")
def max_along_gradient(x: Tensor, y: Tensor, dy: Tensor, *, kind: OperatorType) -> Tensor:
    """(X: (batch, m, n), Y, dY) -> dX: dY where X equals Y, else 0."""
    dim = 2 if kind == "RowwiseMaxGradient" else 1
    require(x.dim() == 3, "X has three dimensions", x)
    return dy.unsqueeze(dim) * (x == y.unsqueeze(dim))


@operator("SumElements", gradient="$Gradient i0 g0 > 0")
def sum_elements(x: Tensor, *, average: bool = False) -> Tensor:
    """The sum of all elements, or their mean with `average`."""
    total = torch.sum(x)
    return total / x.numel() if average and x.numel() else total


@operator("SumElementsGradient", types={"dy": FLOATS})
def sum_elements_gradient(x: Tensor, dy: Tensor, *, average: bool = False) -> Tensor:
    """(X, dY: ()) -> dX = dY, divided by the number of elements with `average`."""
    require(dy.numel() == 1, "the gradient has one element", dy)
    share = dy.view(()) / (max(x.numel(), 1) if average else 1)
    return share.to(x.dtype).expand(x.shape).clone(memory_format=torch.contiguous_format)


@operator("SumElementsInt", types=INT32, gradient="undefined")
def sum_elements_int(x: Tensor) -> Tensor:
    """The sum of all elements, int32."""
    return torch.sum(x, dtype=torch.int32)


@operator("SumSqrElements", types=FLOATS)
def sum_sqr_elements(x: Tensor, *, average: bool = False) -> Tensor:
    """The sum of the squares of all elements, or their mean with `average`."""
    total = torch.sum(torch.square(x))
    return total / x.numel() if average and x.numel() else total


@operator("ReduceTailSum")
def reduce_tail_sum(x: Tensor, *, out: Out = None) -> Tensor:
    """The sum of each row: (n, ...) -> (n,)."""
    require(x.dim() > 0, "X has at least one dimension", x)
    return torch.sum(x.reshape(x.shape[0], math.prod(x.shape[1:])), 1, out=out)


@operator(
    "RowMul",
    gradient=(
        "RowMul g0 i1 > 0; Mul g0 i0 > d1+before_aggregate; ReduceTailSum d1+before_aggregate > 1"
    ),
)
def row_mul(x: Tensor, w: Tensor, *, out: Out = None) -> Tensor:
    """Each row of X times its number in w."""
    require(x.dim() > 0 and w.numel() == x.shape[0], "there is one number per row", w, x)
    return torch.mul(x, w.reshape(-1, *[1] * (x.dim() - 1)), out=out)


@operator("ArgMax", types=NUMBERS, gradient="undefined")
@operator("ArgMin", types=NUMBERS, gradient="undefined")
def arg_extreme(
    x: Tensor, *, axis: int = -1, keepdims: bool = True, kind: OperatorType, out: Out = None
) -> Tensor:
    """The index of the maximum or minimum along `axis`, the first of equal ones."""
    axis = x.dim() - 1 if axis == -1 else axis
    require(0 <= axis < x.dim(), f"axis is -1, or from 0 to below {x.dim()}", axis)
    if not x.numel():
        return torch.sum(x, axis, keepdims).long()
    function = torch.argmax if kind == "ArgMax" else torch.argmin
    return function(x, axis, keepdims, out=out)


def _rows(x: Tensor, y: Tensor, replicate: bool) -> tuple[Tensor, Tensor]:
    """Return X and Y as matrices, each with its own width."""
    require(
        x.dim() == y.dim() > 0, "X and Y have the same number of dimensions, at least one", x, y
    )
    require(x.shape[0] == y.shape[0], "X and Y have the same number of rows", x, y)
    x, y = (one.reshape(one.shape[0], math.prod(one.shape[1:])) for one in (x, y))
    if replicate:
        require(min(x.shape[1], y.shape[1]) > 0, "rows to repeat are not empty", x, y)
    return x, y


def _filled(rows: Tensor, width: int, pad_value: float, replicate: bool) -> Tensor:
    """Return the rows padded or repeated to `width`."""
    if rows.shape[1] == width:
        return rows
    if replicate:
        return rows.repeat(1, width // rows.shape[1])
    return torch.constant_pad_nd(rows, (0, width - rows.shape[1]), pad_value)


def _dot_product_with_padding_gradient(maker: GradientMaker) -> None:
    arguments = {
        "pad_value": maker.argument("pad_value", 0.0),
        "replicate": bool(maker.argument("replicate", 0)),
    }
    inputs = [maker.I(0), maker.I(1), maker.GO(0)]
    maker.add("DotProductWithPaddingGradient", inputs, [maker.GI(0), maker.GI(1)], arguments)


@operator("DotProductWithPadding", gradient=_dot_product_with_padding_gradient)
def dot_product_with_padding(
    x: Tensor, y: Tensor, *, pad_value: float = 0.0, replicate: bool = False, out: Out = None
) -> Tensor:
    """(X: (N, ...), Y: (N, ...)) -> the sum of X * Y per row (N).

    Shorter rows are padded with `pad_value`, or repeated with `replicate`.
    """
    require(x.dim() == y.dim() and x.shape[:1] == y.shape[:1], "X and Y have the same rows", x, y)
    if not x.numel():
        return x.new_zeros(0)  # as in Caffe2, whatever the number of rows
    a, b = _rows(x, y, replicate)
    width = max(a.shape[1], b.shape[1])
    if replicate:  # a multiple of the shorter row
        width -= width % min(a.shape[1], b.shape[1])
    a, b = (_filled(one[:, :width], width, pad_value, replicate) for one in (a, b))
    return torch.sum(a * b, 1, out=out)


def _folded(gradient: Tensor, rows: Tensor, replicate: bool) -> Tensor:
    """Return the gradient of widened rows as that of `rows`."""
    width = rows.shape[1]
    if gradient.shape[1] == width:
        return gradient
    if replicate:
        return gradient.view(rows.shape[0], gradient.shape[1] // width, width).sum(1)
    return gradient[:, :width].contiguous()


@operator("DotProductWithPaddingGradient")
def dot_product_with_padding_gradient(
    x: Tensor, y: Tensor, dz: Tensor, *, pad_value: float = 0.0, replicate: bool = False
) -> tuple[Tensor, Tensor]:
    """(X, Y, dZ: (N)) -> dX, dY."""
    a, b = _rows(x, y, replicate)
    short, long = sorted((a.shape[1], b.shape[1]))
    if replicate:
        require(long % short == 0, "one row length divides the other", x, y)
    dz = dz.view(-1, 1)
    dx = dz * _filled(b, long, pad_value, replicate)
    dy = dz * _filled(a, long, pad_value, replicate)
    return _folded(dx, a, replicate).view(x.shape), _folded(dy, b, replicate).view(y.shape)


def _scale(x: Tensor, average: bool) -> float:
    return 1 / x.numel() if average and x.numel() else 1.0


@operator("LpNorm", gradient="$Gradient i0 g0 > 0")
def lp_norm(x: Tensor, *, p: int = 2, average: bool = False) -> Tensor:
    """Y (1) = the sum of |X|^p, p being 1 or 2, without a root."""
    require(p in (1, 2), "p is 1 or 2", p)
    require(x.numel() > 0 or not average, "a mean is of some elements", x)
    flat = x.reshape(-1)
    total = torch.dot(flat, flat) if p == 2 else torch.sum(torch.abs(flat))
    return (total * _scale(x, average)).view(1)


@operator("LpNormGradient")
def lp_norm_gradient(
    x: Tensor, dy: Tensor, *, p: int = 2, average: bool = False, out: Out = None
) -> Tensor:
    """(X, dY: (1)) -> dX."""
    require(p in (1, 2), "p is 1 or 2", p)
    require(dy.dim() == 1 and dy.numel() == 1, "the gradient has one element", dy)
    slope = torch.sign(x) if p == 1 else 2 * x
    return torch.mul(slope, dy.view(()) * _scale(x, average), out=out)
