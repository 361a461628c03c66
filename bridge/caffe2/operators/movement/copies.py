# SPDX-License-Identifier: Apache-2.0
"""Operators that copy a tensor, once or repeatedly, or alias its memory; and their gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.function_operator import Out, TargetDevice, operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import (
    INT64,
    INTS,
    NUMBERS,
    axis_from_front,
    broadcast_sizes,
    require,
)
from bridge.caffe2.operators.base.gradients import with_gradient
from bridge.caffe2.operators.base.torch_operator import TorchOperator


def copied(x: Tensor, out: Out) -> Tensor:
    """Return `x`, copied to `out` if there is one; the engine copies other results."""
    return x if out is None or out is x else out.copy_(x)


@operator("Copy", types=None, across=("x",), gradient="CopyOnDeviceLike g0 i0 > 0")
def copy(x: Tensor, *, device: TargetDevice = "cpu", out: Out = None) -> Tensor:
    """A copy of X, of any type, which may be on another GPU."""
    return copied(x, out) if out is not None or x.device == device else x.to(device)


@operator("CopyOnDeviceLike", types=None, rearranges={0: 0}, on_host=("x",))
def copy_on_device_like(x: Tensor, like: Tensor) -> Tensor:
    """A copy of X, of any type, on the device of `like`."""
    return x.to(like.device)


@operator("CopyFromCPUInput", types=None, on_host=("x",))
def copy_from_cpu_input(x: Tensor, *, device: TargetDevice = "cpu") -> Tensor:
    """A copy of X, which is on the CPU, on the device of the operator."""
    return x.to(device)


@operator("EnsureCPUOutput", types=None, on_host=("x",), gradient="none")
def ensure_cpu_output(x: Tensor) -> Tensor:
    """A copy of X on the CPU."""
    return x.cpu() if x.is_cuda else x


@operator("StopGradient", inplace="0>0", types=None, gradient="none")
def stop_gradient(x: Tensor, *, out: Out = None) -> Tensor:
    """A copy of X, which has no gradient."""
    # torch.compile does not see that an output of a module has the memory that `detach` shares.
    return x.detach().clone() if x.requires_grad else copied(x, out)


@operator("ZeroGradient", types=None, gradient="ConstantFill{value=0.0} i0 > 0")
def zero_gradient(x: Tensor) -> None:
    """No output; the gradient of the input is zero instead of undefined."""


@operator("NegateGradient", inplace="0>0", types=None, gradient="Negative g0 > 0")
def negate_gradient(x: Tensor, *, out: Out = None) -> Tensor:
    """A copy of X, whose gradient is negated."""
    return with_gradient(x.detach(), -x) if x.requires_grad else copied(x, out)


def _dense_gradient(maker: GradientMaker) -> None:
    given = maker.output_gradients[0]
    if isinstance(given, GradientSlice):
        maker.add("SparseToDense", [*map(str, given), maker.I(0)], [maker.GI(0)])
    else:
        maker.set_gradient(0, maker.GO(0))


@operator("EnsureDense", inplace="0>0", types=None, gradient=_dense_gradient)
def ensure_dense(x: Tensor, *, out: Out = None) -> Tensor:
    """A copy of X, which must have at least one dimension."""
    require(x.dim() > 0, "X has at least one dimension", x)
    return copied(x, out)


def passed_on(maker: GradientMaker) -> None:
    """Let the gradient of the output be that of each input."""
    for i in range(len(maker.op.input)):
        maker.set_gradient(i, maker.GO(0))


@register_operator("Alias", ("cpu", "cuda"), inputs="1", outputs="1", gradient=passed_on)
class Alias(TorchOperator):
    """A tensor with its own sizes that shares the memory of input 0.

    A class, since results of functions have memory of their own.
    """

    def RunOnDevice(self) -> None:
        self.OutputTensorAlias(0, self.given(0))

    @staticmethod
    def as_function(x: Tensor) -> Tensor:
        """Return the value."""
        return x


@register_operator("AliasWithName", ("cpu", "cuda"), inputs="1", outputs="1", inplace="0>0")
class AliasWithName(Alias):
    """Alias; the argument `name` is metadata."""

    @classmethod
    def check(cls, definition: Definition) -> Any:
        """Check a definition, that of a module's step too. Raises EnforceNotMet: it has no name."""
        require("name" in definition.arguments, "The argument name is missing.")
        return super().check(definition)


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
