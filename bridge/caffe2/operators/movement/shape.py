# SPDX-License-Identifier: Apache-2.0
"""Operators that return, change or reorder the sizes of a tensor and keep its elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import INTS, NUMBERS, require


def _resized(x: Tensor, sizes: Sequence[int], out: Out) -> Tensor:
    """Return X with other sizes, copied to `out` if there is one; in place only they change.

    Raises EnforceNotMet: the numbers of elements differ.
    """
    if math.prod(sizes) != x.numel() or any(size < 0 for size in sizes):
        raise EnforceNotMet(
            f"{x.numel()} elements of sizes {list(x.shape)} cannot be reshaped to {list(sizes)}.",
            condition="numel() == new numel",
        )
    if out is x and list(x.shape) == list(sizes):
        return x
    if out is None or out is x:
        return x.reshape(sizes)
    out.view(x.shape).copy_(x)
    return out


def _resolved(shape: list[int], old: Sequence[int]) -> list[int]:
    """Return sizes without 0, which keeps the old size, and without -1, which is inferred."""
    numel = math.prod(old)
    if numel:
        shape = [old[i] if size == 0 and i < len(old) else size for i, size in enumerate(shape)]
    unknown = [i for i, size in enumerate(shape) if size == -1]
    require(len(unknown) <= 1, "at most one size is -1", shape)
    if unknown:
        known = math.prod([size for size in shape if size != -1])
        if numel and (known == 0 or numel % known):
            raise EnforceNotMet(
                f"{numel} elements cannot be reshaped to {shape}.",
                condition="total_size % size == 0",
            )
        shape[unknown[0]] = numel // known if numel else 0
    return shape


def _reshape_gradient(maker: GradientMaker) -> None:
    outputs = [maker.GI(0), f"_{maker.I(0)}_grad_dims"]
    maker.add("Reshape", [maker.GO(0), maker.O(1)], outputs, copied=False)


@operator(
    "Reshape",
    inplace="0>0",
    types={"data": None, "new_shape": INTS},
    rearranges=(0,),
    sized_by=("new_shape",),
    gradient=_reshape_gradient,
)
def reshape(
    data: Tensor,
    new_shape: Tensor | None = None,
    *,
    shape: list[int] | None = None,
    out: Out = None,
) -> tuple[Tensor, Tensor]:
    """The data with the sizes in argument `shape` or input 1; output 1: the old sizes.

    A size of 0 keeps that of the dimension; one size of -1 is inferred.
    """
    dtype = torch.int64
    if new_shape is not None:
        require(shape is None, "the shape is an argument or an input, not both")
        fits = new_shape.dim() == 1 and new_shape.numel() > 0
        require(fits, "input 1 is a list of sizes that is not empty", new_shape)
        wanted: list[int] = new_shape.tolist()
        dtype = new_shape.dtype
    else:
        require(shape is not None, "there is the argument shape, or an input 1")
        wanted = list(shape or ())
    old = list(data.shape)
    sizes = _resolved(wanted, old)
    former = torch.tensor(old, dtype=dtype, device=data.device)
    if out is None:
        return _resized(data, sizes, None), former
    return _resized(data, sizes, out[0]), out[1].copy_(former)


@operator("ResizeLike", types=None, rearranges={0: 0}, gradient="undefined")
def resize_like(x: Tensor, like: Tensor, *, out: Out = None) -> Tensor:
    """X with the sizes of `like`."""
    return _resized(x, list(like.shape), out)


@operator("Flatten", types=None, gradient="ResizeLike g0 i0 > 0")
def flatten(x: Tensor, *, axis: int = 1, out: Out = None) -> Tensor:
    """X with two dimensions: those before `axis`, and the rest."""
    require(0 <= axis <= x.dim(), f"axis is from 0 to {x.dim()}, the dimensions of X", axis)
    return _resized(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])), out)


@operator("FlattenToVec", types=None, gradient="ResizeLike g0 i0 > 0")
def flatten_to_vec(x: Tensor, *, out: Out = None) -> Tensor:
    """X with one dimension."""
    require(x.dim() >= 1, "X has at least one dimension", x)
    return _resized(x, (x.numel(),), out)


def _checked(dims: list[int] | None) -> list[int]:
    """Return indices of dimensions, sorted, each once."""
    found = sorted(set(dims or ()))
    require(bool(found), "there is the argument dims")
    require(found[0] >= 0, "dims are not negative", found)
    return found


@operator("Squeeze", inplace="0>0", types=None, gradient="ExpandDims g0 > 0")
def squeeze(x: Tensor, *, dims: list[int] | None = None, out: Out = None) -> Tensor:
    """X without the dimensions `dims`, which have size 1."""
    dims = _checked(dims)
    old = list(x.shape)
    if dims[-1] >= len(old):
        raise EnforceNotMet(
            f"There is no dimension {dims[-1]} in sizes {old}.", condition="dim() > dims.back()"
        )
    require(all(old[dim] == 1 for dim in dims), f"the dimensions {dims} have size 1", x)
    return _resized(x, [size for i, size in enumerate(old) if i not in dims], out)


@operator("ExpandDims", inplace="0>0", types=None, gradient="Squeeze g0 > 0")
def expand_dims(x: Tensor, *, dims: list[int] | None = None, out: Out = None) -> Tensor:
    """X with dimensions of size 1 inserted at `dims`."""
    dims = _checked(dims)
    sizes = list(x.shape)
    if dims[-1] >= len(sizes) + len(dims):
        raise EnforceNotMet(
            f"Sizes {sizes} and {len(dims)} more have no dimension {dims[-1]}.",
            condition="dim() + dims.size() > dims.back()",
        )
    for dim in dims:
        sizes.insert(dim, 1)
    return _resized(x, sizes, out)


def _prepend_dim_gradient(maker: GradientMaker) -> None:
    maker.add("MergeDim", [maker.GO(0)], [maker.GI(0)], copied=False)


@operator("PrependDim", inplace="0>0", types=None, gradient=_prepend_dim_gradient)
def prepend_dim(x: Tensor, *, dim_size: int = 0, out: Out = None) -> Tensor:
    """X with its first dimension split into `dim_size` and the rest."""
    require(dim_size > 0, "the argument dim_size is positive", dim_size)
    require(x.dim() > 0, "X has at least one dimension", x)
    require(x.shape[0] % dim_size == 0, f"the rows are a multiple of {dim_size}", x)
    return _resized(x, (dim_size, x.shape[0] // dim_size, *x.shape[1:]), out)


@operator("MergeDim", inplace="0>0", types=None)
def merge_dim(x: Tensor, *, out: Out = None) -> Tensor:
    """X with its first two dimensions merged."""
    require(x.dim() > 1, "X has at least two dimensions", x)
    return _resized(x, (x.shape[0] * x.shape[1], *x.shape[2:]), out)


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


def _row_major(x: Tensor, out: Out) -> Tensor:
    """Return a copy of the view `x`."""
    return x.contiguous() if out is None else out.copy_(x)


def _transpose_gradient(maker: GradientMaker) -> None:
    axes = maker.ints("axes")
    operator = maker.add("Transpose", [maker.GO(0)], [maker.GI(0)])
    for argument in operator.arg:
        if argument.name == "axes":
            argument.ints[:] = sorted(range(len(axes)), key=axes.__getitem__)


@operator("Transpose", types=NUMBERS, gradient=_transpose_gradient)
def transpose(data: Tensor, *, axes: list[int] | None = None, out: Out = None) -> Tensor:
    """The dimensions in the order `axes`, by default reversed."""
    axes = axes or list(reversed(range(data.dim())))
    require(
        sorted(axes) == list(range(data.dim())),
        f"the axes are a permutation of those of the data, from 0 to {data.dim() - 1}",
        axes,
    )
    return _row_major(data.permute(axes), out)


@operator("NCHW2NHWC", gradient="NHWC2NCHW g0 > 0")
@operator("NHWC2NCHW", gradient="NCHW2NHWC g0 > 0")
def reorder(data: Tensor, *, kind: OperatorType, out: Out = None) -> Tensor:
    """Move the channels from the second to the last dimension, or back."""
    require(data.dim() >= 3, "the data have at least three dimensions", data)
    places = (1, -1) if kind == "NCHW2NHWC" else (-1, 1)
    return _row_major(data.movedim(*places), out)
