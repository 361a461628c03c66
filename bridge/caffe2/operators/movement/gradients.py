# SPDX-License-Identifier: Apache-2.0
"""Gradients of operators that slice, repeat or gather."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import (
    FLOAT,
    INTS,
    NUMBERS,
    TorchOperator,
    enforce,
    normal_axis,
)
from bridge.caffe2.operators.movement.slice_gather import slice_bounds

__all__: list[str] = []


@register_operator("SliceGradient")
class SliceGradient(TorchOperator):
    """The gradient of Slice. Inputs: data, optionally starts and ends, the gradient."""

    def RunOnDevice(self) -> None:
        x = self.Input(0)
        if self.InputSize() == 4:
            starts, ends = self.integers(1), self.integers(2)
        else:
            starts, ends = self.GetRepeatedArgument("starts"), self.GetRepeatedArgument("ends")
        enforce(
            len(starts) == len(ends) <= x.dim(),
            "There must be as many starts as ends, at most one per dimension.",
        )
        gradient = self.x(self.InputSize() - 1)
        result = gradient.new_zeros(torch.Size(x.sizes()))
        part = result
        for dim, (start, end) in enumerate(zip(starts, ends, strict=True)):
            size = x.size(dim)
            start, end = slice_bounds(start, end, size)
            enforce(
                0 <= start <= end,
                f"{starts[dim]} to {ends[dim]} is not within dimension {dim} of size {size}.",
            )
            part = part.narrow(dim, start, end - start)
        enforce(
            part.shape == gradient.shape,
            f"The gradient has sizes {list(gradient.shape)}, not {list(part.shape)}.",
        )
        part.copy_(gradient)
        self.put(0, result)


@register_operator("ExpandGradient")
class ExpandGradient(TorchOperator):
    """The gradient of Expand. Inputs: the gradient of its output, its input."""

    def RunOnDevice(self) -> None:
        dy, x = self.x(0, NUMBERS), self.x(1)
        spare = dy.dim() - x.dim()
        enforce(spare >= 0, "The gradient must have at least as many dimensions as the input.")
        over = [i for i in range(dy.dim()) if i < spare or x.size(i - spare) == 1]
        total = dy.sum(over, dtype=dy.dtype) if over else dy.clone()
        self.put(0, total.reshape(x.shape))


@register_operator("TileGradient")
class TileGradient(TorchOperator):
    """The gradient of Tile, with its arguments. Input 0: the gradient of its output."""

    def RunOnDevice(self) -> None:
        dy = self.x(0, NUMBERS)
        tiles, axis = self.GetSingleArgument("tiles", 1), self.GetSingleArgument("axis", 0)
        if self.InputSize() > 1:
            tiles = self.integers(1)[0]
        if self.InputSize() > 2:
            axis = self.integers(2)[0]
        axis = normal_axis(axis, dy.dim())
        rows = dy.size(axis)
        enforce(
            tiles > 0 and rows % tiles == 0, f"{rows} rows cannot be divided into {tiles} tiles."
        )
        sizes = [*dy.shape[:axis], tiles, rows // tiles, *dy.shape[axis + 1 :]]
        self.put(0, dy.reshape(sizes).sum(axis, dtype=dy.dtype))


@register_operator("BatchGatherGradient")
class BatchGatherGradient(TorchOperator):
    """The gradient of BatchGather along `axis` (1). Inputs: data, indices, the gradient."""

    def RunOnDevice(self) -> None:
        x, indices, gradient = self.x(0, FLOAT), self.x(1, INTS), self.x(2, FLOAT)
        axis = normal_axis(self.GetSingleArgument("axis", 1), x.dim())
        enforce(x.dim() >= 2, "The data must have two dimensions or more.")
        rows = x.size(axis)
        enforce(bool(((indices >= 0) & (indices < rows)).all()), "An index is out of range.")
        outer, inner = x.shape[:axis].numel(), x.shape[axis + 1 :].numel()
        result = x.new_zeros((outer, rows, inner))
        if self.GetSingleArgument("match_outer", False):
            places = indices.reshape(outer, -1, 1).long().expand(-1, -1, inner)
        else:
            places = indices.reshape(1, -1, 1).long().expand(outer, -1, inner)
        enforce(
            gradient.numel() == places.numel(), "The gradient must have the size of the output."
        )
        result.scatter_add_(1, places, gradient.reshape(places.shape))
        self.put(0, result.view(x.shape))


@register_operator("CopyRowsToTensorGradient")
class CopyRowsToTensorGradient(TorchOperator):
    """The gradient of CopyRowsToTensor: that of its output, unchanged."""

    def RunOnDevice(self) -> None:
        if not self._in_place:
            self.put(0, self.x(0).clone())
