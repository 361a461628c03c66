# SPDX-License-Identifier: Apache-2.0
"""Operators that copy parts of a tensor: Slice, Gather, GatherRanges; and their gradients."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bridge.c10.errors import EnforceIndexError, EnforceNotMet
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import add_pattern
from bridge.caffe2.operators.base.checks import (
    INT64,
    INTS,
    assert_traced,
    axis_from_front,
    has_values,
    require,
    require_range,
)
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import copied_rows, rows_at
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.movement import row_kernels

# Elements up to which a kernel gathers rows: 250 microseconds for as many, by torch 340 on one
# thread; for twice as many 1,100 and 1,150, which torch shares among several threads.
_FEW = 1 << 20


def slice_bounds(start: int, end: int, size: int) -> tuple[int, int]:
    """Return the bounds of a slice of a dimension, where -1 is the end, clamped to `size`."""
    return (
        min(start + size + 1 if start < 0 else start, size),
        min(end + size + 1 if end < 0 else end, size),
    )


def _slice_gradient(maker: GradientMaker) -> None:
    given = len(maker.op.input) > 1
    add_pattern("$Gradient i0 i1 i2 g0 > 0" if given else "$Gradient i0 g0 > 0", maker)


@operator(
    "Slice",
    types={"data": None, "starts_input": INTS, "ends_input": "starts_input"},
    sized_by=("starts_input", "ends_input"),
    gradient=_slice_gradient,
)
def slice_(
    data: Tensor,
    starts_input: Tensor | None = None,
    ends_input: Tensor | None = None,
    *,
    starts: list[int] | None = None,
    ends: list[int] | None = None,
    out: Out = None,
) -> Tensor:
    """The part of the data from starts to ends, which are arguments or inputs 1 and 2.

    A negative index counts from one beyond the end, so that -1 is the end. At most one dimension
    may be sliced.
    """
    if starts_input is not None:
        require(ends_input is not None, "starts and ends are both inputs, or both arguments")
        assert ends_input is not None
        for given in (starts_input, ends_input):
            require(given.dim() == 1, "starts and ends have one dimension", given)
        starts, ends = starts_input.tolist(), ends_input.tolist()
    fits = starts is not None and ends is not None
    require(fits, "there are the arguments starts and ends, or inputs")
    assert starts is not None
    assert ends is not None
    if len(starts) != len(ends) or len(starts) > data.dim():
        raise EnforceNotMet(
            f"{len(starts)} starts and {len(ends)} ends do not match {data.dim()} dimensions."
        )
    part, cut = data, 0
    for dim, (start, end) in enumerate(zip(starts, ends, strict=True)):
        size = data.shape[dim]
        start, end = slice_bounds(start, end, size)
        if size and not 0 <= start <= end:
            raise EnforceNotMet(
                f"{starts[dim]} to {ends[dim]} is not within dimension {dim} of size {size}."
            )
        if size and end - start < size:
            cut += 1
            part = part.narrow(dim, start, end - start)
    require(cut <= 1 or not data.numel(), "only one dimension is sliced at a time", starts, ends)
    return part.contiguous() if out is None else out.copy_(part)


def _check_range(places: Tensor, indices: Tensor, rows: int, axis: int) -> None:
    """Raise EnforceNotMet, also an IndexError, unless places, if known, are in [0, `rows`)."""
    if has_values(places) and bool(((places < 0) | (places >= rows)).any()):
        raise EnforceIndexError(
            f"An index of {sorted(set(indices.reshape(-1).tolist()))} is out of range for {rows} "
            f"rows along axis {axis}.",
            condition="0 <= idx && idx < indexing_axis_dim",
        )


def _gathered(data: Tensor, indices: Tensor, axis: int, wrap: bool, match_outer: bool) -> Tensor:
    """Return the slices of the data along an axis at the indices."""
    axis = axis_from_front(axis, data.dim())
    rows = data.shape[axis]
    if rows == 0:
        return data.clone()
    places = indices
    if wrap:
        zero, end = indices.new_zeros(()), indices.new_full((), rows)
        places = torch.where(indices < zero, indices + end, indices)
    if not has_values(places):
        assert_traced(places, "indices are in range", lambda x: (x >= 0) & (x < rows))
    # On the CPU torch checks the indices; a kernel for CUDA that fails ends the process.
    if places.is_cuda:
        _check_range(places, indices, rows, axis)
    outer, inner = data.shape[:axis], data.shape[axis + 1 :]
    if match_outer:
        require(axis >= 1, "with match_outer the axis is at least 1", axis)
        fits = indices.shape[:axis] == outer
        require(fits, "the sizes of indices begin as those of data", indices)
    try:
        if not match_outer:
            found = torch.index_select(data, axis, places.reshape(-1))
            return found.view((*outer, *indices.shape, *inner))
        blocks = data.reshape(math.prod(outer), rows, math.prod(inner))
        each = places.long().reshape(math.prod(outer), math.prod(indices.shape[axis:]), 1)
        found = torch.gather(blocks, 1, each.expand(-1, -1, blocks.shape[2]))
        return found.view((*indices.shape, *inner))
    except (IndexError, RuntimeError):  # along other axes than 0 it is the latter
        _check_range(places, indices, rows, axis)
        raise


def _gather_gradient(maker: GradientMaker) -> None:
    axis = maker.argument("axis", 0)
    if axis:
        add_pattern(f"BatchGatherGradient{{axis={axis}}} i0 i1 g0 > 0", maker)
    elif maker.argument("dense_gradient", 0):
        add_pattern("SparseToDense i1 g0 i0 > 0", maker)
    else:
        maker.set_gradient(0, GradientSlice(maker.I(1), maker.GO(0)))


@operator("Gather", types={"data": None, "indices": INTS}, gradient=_gather_gradient)
def gather(
    data: Tensor,
    indices: Tensor,
    *,
    axis: int = 0,
    wrap_indices: bool | None = None,
    match_outer: bool = False,
    out: Out = None,
) -> Tensor:
    """The slices of the data along `axis` at the indices.

    Negative indices count from the end with `wrap_indices`, by default along axis 0.
    Raises EnforceNotMet, also an IndexError: an index is out of range.
    """
    wrap = axis == 0 if wrap_indices is None else wrap_indices
    if (
        axis == 0
        and not match_outer
        and takes_kernels(data, dtype=data.dtype)
        and takes_kernels(indices, dtype=indices.dtype)
        and data.dim()
        and data.shape[0]
    ):
        n, width = indices.numel(), math.prod(data.shape[1:])
        if n * width <= _FEW:
            y = data.new_empty((*indices.shape, *data.shape[1:])) if out is None else out
            sizes = (n, data.shape[0], width, data.element_size())
            return run_kernel(
                row_kernels.take, y, data, indices, *sizes, indices.dtype is torch.int64, wrap
            )
    return _gathered(data, indices, axis, wrap, match_outer)


@operator("BatchGather", types={"data": None, "indices": INTS}, gradient="$Gradient i0 i1 g0 > 0")
def batch_gather(data: Tensor, indices: Tensor, *, match_outer: bool = False) -> Tensor:
    """The slices of the data along axis 1 at the indices.

    Raises EnforceNotMet, also an IndexError: an index is out of range.
    """
    return _gathered(data, indices, 1, False, match_outer)


@operator("SliceGradient", inputs="0-*", outputs="0-*", types=None)
def slice_gradient(
    data: Tensor, *others: Tensor, starts: list[int] | None = None, ends: list[int] | None = None
) -> Tensor:
    """The gradient of Slice. Inputs: data, optionally starts and ends, the gradient."""
    require(len(others) in (1, 3), "the inputs are data, optionally starts and ends, the gradient")
    gradient = others[-1]
    firsts: list[int] = others[0].tolist() if len(others) == 3 else starts or []
    lasts: list[int] = others[1].tolist() if len(others) == 3 else ends or []
    fits = len(firsts) == len(lasts) <= data.dim()
    require(fits, "there are as many starts as ends, at most one per dimension", firsts, lasts)
    sizes = list(data.shape)
    pads: list[int] = []  # of the last dimension first
    for dim, (start, end) in enumerate(zip(firsts, lasts, strict=True)):
        size = data.shape[dim]
        start, end = slice_bounds(start, end, size)
        require(0 <= start <= end, f"the part is within dimension {dim} of size {size}", start, end)
        sizes[dim] = end - start
        pads = [start, size - end, *pads]
    require(list(gradient.shape) == sizes, f"the gradient has the sizes {sizes}", gradient)
    pads = [0, 0] * (data.dim() - len(firsts)) + pads
    return torch.constant_pad_nd(gradient, pads)


@operator("BatchGatherGradient", types={"indices": INTS})
def batch_gather_gradient(
    data: Tensor,
    indices: Tensor,
    dy: Tensor,
    *,
    axis: int = 1,
    match_outer: bool = False,
    out: Out = None,
) -> Tensor:
    """The gradient of BatchGather along `axis`, from data, indices, and that of its output."""
    axis = axis_from_front(axis, data.dim())
    require(data.dim() >= 2, "the data have at least two dimensions", data)
    require(dy.shape[:axis] == data.shape[:axis], "the outer dimensions are equal", dy, data)
    rows = data.shape[axis]
    outer, inner = math.prod(data.shape[:axis]), math.prod(data.shape[axis + 1 :])
    n = indices.numel()
    fits = not match_outer and dy.numel() == outer * n * inner
    fits = fits and out is not None and takes_kernels(indices, dtype=indices.dtype)
    if fits and out is not None and takes_kernels(out, dy):
        wide = indices.dtype is torch.int64
        return run_kernel(row_kernels.add_along, out, dy, indices, outer, n, rows, inner, wide)
    require_range("the indices", indices, rows)
    if match_outer:
        require(indices.shape[:axis] == data.shape[:axis], "the outer dimensions match", indices)
        found = math.prod(indices.shape[axis:])
        places = indices.reshape(outer, found, 1).long().expand(-1, -1, inner)
    else:
        places = indices.reshape(1, -1, 1).long().expand(outer, -1, inner)
    require(dy.numel() == places.numel(), "the gradient has the size of the output", dy)
    empty = data.new_zeros((outer, rows, inner))
    return empty.scatter_add(1, places, dy.reshape(places.shape)).view(data.shape)


@operator(
    "GatherRanges", types={"data": None, "ranges": INTS}, rearranges=(0,), effects=("values",)
)
def gather_ranges(data: Tensor, ranges: Tensor) -> tuple[Tensor, Tensor]:
    """Concatenate the ranges of the data; output 1: the total lengths per row.

    ranges: (rows, ranges, 2), start and length.
    """
    require(data.dim() == 1, "the data have one dimension", data)
    fits = ranges.dim() == 3 and ranges.shape[1] > 0 and ranges.shape[2] == 2
    require(fits, "ranges have the sizes (batch, ranges, 2)", ranges)
    places = ranges_of(ranges.reshape(-1, 2), data.numel())
    return rows_at(data, places), ranges[:, :, 1].sum(1).int()


def ranges_of(ranges: Tensor, n: int) -> Tensor:
    """Return the indices in the ranges (start, length), concatenated.

    Raises EnforceNotMet: a range is out of range for `n` elements.
    """
    starts, lengths = ranges.long().unbind(1)
    inside = (torch.minimum(starts, lengths) >= 0) & (starts + lengths <= n)
    if not bool((inside | (lengths == 0)).all()):
        raise EnforceNotMet(
            f"A range is out of range for {n} elements.", condition="start + length <= numel"
        )
    places = torch.repeat_interleave(starts - (lengths.cumsum(0) - lengths), lengths)
    return places + torch.arange(places.shape[0], device=places.device)


@register_operator("GatherRangesToDense", inputs="2-3", outputs="1-*", gradient="none")
class GatherRangesToDense(TorchOperator):
    """The ranges of input 0 as rows of `lengths`, one output each; 0 for other lengths.

    With input 2, keys, the elements of a range are sorted by them.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._lengths = self.GetRepeatedArgument("lengths")
        fits = bool(self._lengths) and min(self._lengths) > 0
        require(fits, "The argument lengths must have positive numbers, one per output.")
        self._observed = 0
        self._mismatched = [0] * len(self._lengths)
        self._empty = [0] * len(self._lengths)

    def RunOnDevice(self) -> None:
        ranges = self.x(1, INTS)
        items: list[Any] = []
        x, dtype = self.load(0, items), self.Input(0).dtype()
        require(x.dim() == 1 and ranges.dim() == 3, "Data must have one dimension, ranges three.")
        n = len(self._lengths)
        require(
            ranges.size(1) == n == self.OutputSize() and ranges.size(2) == 2,
            f"Ranges of sizes {list(ranges.shape)} are not (batch, {n}, 2), for {n} outputs.",
        )
        ranges_of(ranges.reshape(-1, 2), x.numel())
        keys = None
        if self.InputSize() == 3:
            keys = self.x(2, INT64)
            require(keys.dim() == 1, "Keys must have one dimension.")
        results = []
        empty, mismatched = list(self._empty), list(self._mismatched)
        for o, length in enumerate(self._lengths):
            starts, sizes = ranges[:, o].long().unbind(1)
            rows = (sizes == length).nonzero().view(-1)
            none = int((sizes == 0).sum())
            empty[o] += none
            mismatched[o] += len(sizes) - none - len(rows)
            places = starts[rows].unsqueeze(1) + torch.arange(length, device=x.device)
            if keys is not None:
                places = places.gather(1, torch.sort(keys[places], dim=1, stable=True).indices)
            parts = rows_at(x, places.view(-1)).view(-1, length)
            results.append(copied_rows(x.new_zeros((len(sizes), length)), rows, parts))
        seen = self._observed + ranges.size(0)
        counted = max(seen, self.GetSingleArgument("min_observation", 10000))
        for counts, name, default in (
            (mismatched, "max_mismatched_ratio", 0.01),
            (empty, "max_empty_ratio", 1.0),
        ):
            ratio = self.GetSingleArgument(name, default)
            fits = ratio >= 1 or all(count <= counted * ratio for count in counts)
            require(fits, f"More ranges have another length, or are empty, than {name} allows.")
        self._observed, self._empty, self._mismatched = seen, empty, mismatched
        for o, result in enumerate(results):
            self.store(o, result, items, dtype)
