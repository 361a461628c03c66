# SPDX-License-Identifier: Apache-2.0
"""Elements in another order, repeated, or only some of them."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceIndexError, EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.mover import Mover
from bridge.caffe2.operators.base.torch_operator import (
    INT64,
    INTS,
    NUMBERS,
    TorchOperator,
    enforce,
    normal_axis,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("Transpose")
class Transpose(TorchOperator):
    """The dimensions in the order `axes`, or the other way round."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._axes = self.GetRepeatedArgument("axes")
        enforce(
            sorted(self._axes) == list(range(len(self._axes))),
            f"The axes {self._axes} are no permutation of 0 to {len(self._axes) - 1}.",
        )

    def RunOnDevice(self) -> None:
        x = self.x(0, NUMBERS)
        axes = self._axes or list(reversed(range(x.dim())))
        enforce(len(axes) == x.dim(), f"{len(axes)} axes are given for {x.dim()} dimensions.")
        self.put(0, x.permute(axes).clone(memory_format=torch.contiguous_format))


class _Order(TorchOperator):
    """Images in another order of dimensions."""

    first = True

    def RunOnDevice(self) -> None:
        x = self.x(0, (c10.float32,))
        enforce(x.dim() >= 3, f"Images have three dimensions or more, not {x.dim()}.")
        moved = x.movedim(1, -1) if self.first else x.movedim(-1, 1)
        self.put(0, moved.clone(memory_format=torch.contiguous_format))


@register_operator("NCHW2NHWC")
class NCHW2NHWC(_Order):
    """Channels from second to last."""


@register_operator("NHWC2NCHW")
class NHWC2NCHW(_Order):
    """Channels from last to second."""

    first = False


@register_operator("Slice")
class Slice(Mover):
    """The part of input 0 from `starts` to `ends`, arguments or inputs 1 and 2.

    A negative place counts from one beyond the end, so that -1 is the end. Only one dimension may
    be cut.
    """

    def move(self) -> None:
        if self.InputSize() > 1:
            enforce(self.InputSize() == 3, "Starts and ends are both inputs, or both arguments.")
            for i in (1, 2):
                enforce(self.Input(i).dim() == 1, f"Input {i} has to have one dimension.")
            enforce(
                self.Input(1).dtype() is self.Input(2).dtype(), "Starts and ends differ in type."
            )
            starts, ends = self.integers(1), self.integers(2)
        else:
            for name in ("starts", "ends"):
                enforce(self.HasArgument(name), f"The argument {name} is missing.")
            starts, ends = self.GetRepeatedArgument("starts"), self.GetRepeatedArgument("ends")
        sizes = list(self.Input(0).sizes())
        if len(starts) != len(ends) or len(starts) > len(sizes):
            raise EnforceNotMet(
                f"{len(starts)} starts and {len(ends)} ends are given for {len(sizes)} dimensions."
            )
        x = self.take(0)
        cut = 0
        for dim, (start, end) in enumerate(zip(starts, ends, strict=True)):
            size = sizes[dim]
            start = min(start + size + 1 if start < 0 else start, size)
            end = min(end + size + 1 if end < 0 else end, size)
            if size and not 0 <= start <= end:
                raise EnforceNotMet(
                    f"{starts[dim]} to {ends[dim]} is no part of dimension {dim} of {size}."
                )
            if size and end - start < size:
                cut += 1
                x = x.narrow(dim, start, end - start)
        enforce(
            cut <= 1 or not self.Input(0).numel(), "Only one dimension can be sliced at a time."
        )
        self.give(0, x.clone(memory_format=torch.contiguous_format), self.Input(0).dtype())


class _Gather(Mover):
    """Rows of input 0 along an axis, by the indices of input 1."""

    def gather(self, axis: int, wrap: bool, match_outer: bool) -> None:
        """Return output 0 the rows; `wrap`: negative indices count from the end."""
        data, dtype = self.take(0), self.Input(0).dtype()
        indices = self.x(1, INTS)
        axis = normal_axis(axis, data.dim())
        rows = data.size(axis)
        if rows == 0:
            self.give(0, data.clone(), dtype)
            return
        places = indices.long()
        if wrap:
            places = torch.where(places < 0, places + rows, places)
        if bool(((places < 0) | (places >= rows)).any()):
            raise EnforceIndexError(
                f"An index of {sorted(set(indices.reshape(-1).tolist()))} is out of range for "
                f"{rows} rows along axis {axis}.",
                condition="0 <= idx && idx < indexing_axis_dim",
            )
        if not match_outer:
            found = data.index_select(axis, places.reshape(-1))
            sizes = [*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]]
            self.give(0, found.view(sizes), dtype)
            return
        outer = data.shape[:axis]
        enforce(axis >= 1, "With match_outer the axis is 1 at least.")
        enforce(
            indices.shape[:axis] == outer,
            f"Indices of sizes {list(indices.shape)} do not begin with the sizes {list(outer)}.",
        )
        sizes = [*indices.shape, *data.shape[axis + 1 :]]
        flat = data.reshape(outer.numel(), rows, data.shape[axis + 1 :].numel())
        each = places.reshape(outer.numel(), indices.shape[axis:].numel(), 1)
        each = each.expand(-1, -1, flat.size(2))
        self.give(0, flat.gather(1, each).view(sizes), dtype)


@register_operator("Gather")
class Gather(_Gather):
    """Rows of input 0 along `axis` (0), by the indices of input 1."""

    def move(self) -> None:
        axis = self.GetSingleArgument("axis", 0)
        wrap = self.GetSingleArgument("wrap_indices", axis == 0)
        self.gather(axis, wrap, self.GetSingleArgument("match_outer", False))


@register_operator("BatchGather")
class BatchGather(_Gather):
    """Rows of input 0 along axis 1, by the indices of input 1."""

    def move(self) -> None:
        self.gather(1, False, self.GetSingleArgument("match_outer", False))


@register_operator("Tile")
class Tile(Mover):
    """Input 0 `tiles` times along `axis`; both are arguments, or inputs 1 and 2."""

    def move(self) -> None:
        dtype = self.Input(0).dtype()
        enforce(
            dtype in (*NUMBERS, c10.uint8, c10.float16, c10.string),
            f"Tile takes no {dtype.name}.",
        )
        tiles, axis = self.GetSingleArgument("tiles", 1), self.GetSingleArgument("axis", 0)
        if self.InputSize() > 1:
            tiles = self._number(1)
            if self.Input(1).dtype() is c10.int64:
                axis = 0  # Caffe2 overlooks the argument where the tiles are of int64.
        else:
            enforce(self.HasArgument("tiles"), "tiles is neither an argument nor an input.")
        if self.InputSize() > 2:
            axis = self._number(2)
        else:
            enforce(self.HasArgument("axis"), "axis is neither an argument nor an input.")
        enforce(tiles >= 0, f"Tiles are not negative, as {tiles}.")
        x = self.take(0)
        repeats = [1] * x.dim()
        repeats[normal_axis(axis, x.dim())] = tiles
        self.give(0, x.repeat(repeats), self.Input(0).dtype())

    def _number(self, i: int) -> int:
        tensor = self.Input(i)
        enforce(tensor.dim() == 1 and tensor.numel() == 1, f"Input {i} has to be one number.")
        return self.integers(i)[0]


@register_operator("NumpyTile")
class NumpyTile(Mover):
    """Input 0 as often along each dimension as input 1 says."""

    def move(self) -> None:
        repeats = self.integers(1, INT64)
        enforce(self.Input(1).dim() == 1, "Input 1 has to have one dimension.")
        x = self.take(0)
        enforce(len(repeats) == x.dim(), f"{len(repeats)} repeats for {x.dim()} dimensions.")
        enforce(min(repeats, default=0) >= 0, f"The repeats {repeats} are not to be negative.")
        self.give(0, x.repeat(repeats), self.Input(0).dtype())


@register_operator("Expand")
class Expand(TorchOperator):
    """Input 0 and the sizes of input 1 broadcast together; a size below 1 keeps its own."""

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
