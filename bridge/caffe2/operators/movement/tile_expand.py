# SPDX-License-Identifier: Apache-2.0
"""Operators that repeat a tensor along its dimensions: Tile, NumpyTile, Expand."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import (
    INT64,
    NUMBERS,
    TorchOperator,
    enforce,
    normal_axis,
)

__all__: list[str] = []


@register_operator("Tile")
class Tile(AnyTypeOperator):
    """Input 0 repeated `tiles` times along `axis`; both are arguments, or inputs 1 and 2."""

    def move(self) -> None:
        dtype = self.Input(0).dtype()
        enforce(
            dtype in (*NUMBERS, c10.uint8, c10.float16, c10.string),
            f"Tile does not support {dtype.name}.",
        )
        tiles, axis = self.GetSingleArgument("tiles", 1), self.GetSingleArgument("axis", 0)
        if self.InputSize() > 1:
            tiles = self._number(1)
            if self.Input(1).dtype() is c10.int64:
                axis = 0  # Caffe2 ignores the argument if the tiles are int64.
        else:
            enforce(self.HasArgument("tiles"), "The tiles must be an argument or an input.")
        if self.InputSize() > 2:
            axis = self._number(2)
        else:
            enforce(self.HasArgument("axis"), "The axis must be an argument or an input.")
        enforce(tiles >= 0, f"Tiles must not be negative: {tiles}.")
        x = self.load(0)
        repeats = [1] * x.dim()
        repeats[normal_axis(axis, x.dim())] = tiles
        self.store(0, x.repeat(repeats), self.Input(0).dtype())

    def _number(self, i: int) -> int:
        tensor = self.Input(i)
        enforce(tensor.dim() == 1 and tensor.numel() == 1, f"Input {i} must have one element.")
        return self.integers(i)[0]


@register_operator("NumpyTile")
class NumpyTile(AnyTypeOperator):
    """Input 0 repeated along each dimension as specified in input 1."""

    def move(self) -> None:
        repeats = self.integers(1, INT64)
        enforce(self.Input(1).dim() == 1, "Input 1 must have one dimension.")
        x = self.load(0)
        enforce(
            len(repeats) == x.dim(),
            f"There are {len(repeats)} repeats, but input 0 has {x.dim()} dimensions.",
        )
        enforce(min(repeats, default=0) >= 0, f"The repeats must not be negative: {repeats}.")
        self.store(0, x.repeat(repeats), self.Input(0).dtype())


@register_operator("Expand")
class Expand(TorchOperator):
    """Input 0 broadcast with the sizes in input 1; a size below 1 keeps that of input 0."""

    def RunOnDevice(self) -> None:
        x = self.x(0, NUMBERS)
        shape = [max(size, 1) for size in self.integers(1, INT64)]
        try:
            sizes = torch.broadcast_shapes(x.shape, shape)
        except RuntimeError as cause:
            raise EnforceNotMet(
                f"The sizes {list(x.shape)} do not expand to {shape}.",
                condition="shape_x == 1 || shape_y == 1 || shape_x == shape_y",
            ) from cause
        self.put(0, x.expand(sizes).clone(memory_format=torch.contiguous_format))
