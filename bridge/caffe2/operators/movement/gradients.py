# SPDX-License-Identifier: Apache-2.0
"""Gradients of operators that slice, repeat or gather."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import (
    INTS,
    NUMBERS,
    axis_from_front,
    require,
    require_range,
)
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.movement import row_kernels
from bridge.caffe2.operators.movement.slice_gather import slice_bounds
from bridge.caffe2.operators.movement.tile_expand import tiling


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


@operator("ExpandGradient", types={"dy": NUMBERS, "x": None}, rearranges=())
def expand_gradient(dy: Tensor, x: Tensor) -> Tensor:
    """The gradient of Expand, from that of its output and its input."""
    spare = dy.dim() - x.dim()
    require(spare >= 0, "the gradient has at least as many dimensions as the input", dy, x)
    over = [i for i in range(dy.dim()) if i < spare or x.shape[i - spare] == 1]
    total = torch.sum(dy, over, dtype=dy.dtype) if over else dy.clone()
    return total.reshape(x.shape)


@operator(
    "TileGradient",
    types={"dy": NUMBERS, "tiles_input": INTS, "axis_input": INTS},
    sized_by=("tiles_input", "axis_input"),
)
def tile_gradient(
    dy: Tensor,
    tiles_input: Tensor | None = None,
    axis_input: Tensor | None = None,
    *,
    tiles: int | None = None,
    axis: int | None = None,
) -> Tensor:
    """The gradient of Tile, with its arguments, from that of its output."""
    tiles, axis = tiling(tiles, axis, tiles_input, axis_input)
    axis = axis_from_front(axis, dy.dim())
    rows = dy.shape[axis]
    require(tiles > 0 and rows % tiles == 0, f"{rows} rows are a multiple of the tiles", tiles)
    parts = dy.reshape(*dy.shape[:axis], tiles, rows // tiles, *dy.shape[axis + 1 :])
    return torch.sum(parts, axis, dtype=dy.dtype)


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


@operator("CopyRowsToTensorGradient", inplace="0>0", types=(c10.float16, *NUMBERS))
def copy_rows_to_tensor_gradient(dy: Tensor) -> Tensor:
    """The gradient of CopyRowsToTensor: that of its output, unchanged."""
    return dy
