# SPDX-License-Identifier: Apache-2.0
"""Operators that repeat a tensor along its dimensions, and their gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import (
    INT64,
    INTS,
    NUMBERS,
    axis_from_front,
    broadcast_sizes,
    require,
)


def tiling(
    tiles: int | None, axis: int | None, tiles_input: Tensor | None, axis_input: Tensor | None
) -> tuple[int, int]:
    """Return the number of tiles and the axis of Tile, from its arguments and inputs."""
    if tiles_input is not None:
        tiles = _number(tiles_input)
        if tiles_input.dtype == torch.int64:
            axis = 0 if axis is not None else None  # Caffe2 ignores the argument then.
    if axis_input is not None:
        axis = _number(axis_input)
    require(tiles is not None, "the tiles are an argument or an input")
    require(axis is not None, "the axis is an argument or an input")
    assert tiles is not None
    assert axis is not None
    return tiles, axis


def _number(x: Tensor) -> int:
    require(x.dim() == 1 and x.numel() == 1, "the inputs for tiles and axis have one element", x)
    return int(x.item())


@operator(
    "Tile",
    types={"x": None, "tiles_input": INTS, "axis_input": INTS},
    gradient="$Gradient g0 i1? i2? > 0",
    sized_by=("tiles_input", "axis_input"),
)
def tile(
    x: Tensor,
    tiles_input: Tensor | None = None,
    axis_input: Tensor | None = None,
    *,
    tiles: int | None = None,
    axis: int | None = None,
) -> Tensor:
    """X repeated `tiles` times along `axis`; both are arguments, or inputs 1 and 2."""
    known = (torch.int32, torch.int64, torch.float32, torch.float64, torch.uint8, torch.float16)
    require(x.dtype in known, "X is of numbers or strings", x.dtype)
    tiles, axis = tiling(tiles, axis, tiles_input, axis_input)
    require(tiles >= 0, "the tiles are not negative", tiles)
    axis = axis_from_front(axis, x.dim())
    sizes = [*x.shape[:axis], tiles, *x.shape[axis:]]
    # repeat takes three times as long
    return x.unsqueeze(axis).expand(sizes).flatten(axis, axis + 1).contiguous()


@operator("NumpyTile", types={"x": None, "repeats": INT64}, outputs="0-*", sized_by=("repeats",))
def numpy_tile(x: Tensor, repeats: Tensor) -> Tensor:
    """X repeated along each dimension as specified in input 1."""
    require(repeats.dim() == 1, "input 1 has one dimension", repeats)
    times: list[int] = repeats.tolist()
    require(len(times) == x.dim(), "there is one repeat per dimension of X", times, x)
    require(all(time >= 0 for time in times), "the repeats are not negative", times)
    return x.repeat(times)


@operator(
    "Expand",
    types={"x": NUMBERS, "shape": INT64},
    gradient="$Gradient g0 i0 > 0",
    sized_by=("shape",),
)
def expand(x: Tensor, shape: Tensor, *, out: Out = None) -> Tensor:
    """X broadcast with the sizes in input 1; a size below 1 keeps that of X."""
    wanted = [max(size, 1) for size in shape.reshape(-1).tolist()]
    try:
        sizes = broadcast_sizes(x.shape, wanted)
    except RuntimeError as cause:
        raise EnforceNotMet(
            f"The sizes {list(x.shape)} do not expand to {wanted}.",
            condition="shape_x == 1 || shape_y == 1 || shape_x == shape_y",
        ) from cause
    wide = x.expand(sizes)
    return wide.clone(memory_format=torch.contiguous_format) if out is None else out.copy_(wide)


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
