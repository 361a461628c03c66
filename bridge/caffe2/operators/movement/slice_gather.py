# SPDX-License-Identifier: Apache-2.0
"""Operators that copy a part of a tensor: Slice, Gather, BatchGather."""

from __future__ import annotations

from bridge.c10.errors import EnforceIndexError, EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INTS, enforce, normal_axis

__all__: list[str] = []


def slice_bounds(start: int, end: int, size: int) -> tuple[int, int]:
    """Return the bounds of a slice of a dimension, where -1 is the end, clamped to `size`."""
    return (
        min(start + size + 1 if start < 0 else start, size),
        min(end + size + 1 if end < 0 else end, size),
    )


@register_operator("Slice")
class Slice(AnyTypeOperator):
    """The part of input 0 from `starts` to `ends`, which are arguments or inputs 1 and 2.

    A negative index counts from one beyond the end, so that -1 is the end. At most one dimension
    may be sliced.
    """

    def move(self) -> None:
        if self.InputSize() > 1:
            enforce(
                self.InputSize() == 3, "Starts and ends must be both inputs, or both arguments."
            )
            for i in (1, 2):
                enforce(self.Input(i).dim() == 1, f"Input {i} must have one dimension.")
            enforce(
                self.Input(1).dtype() is self.Input(2).dtype(),
                "Starts and ends must have the same type.",
            )
            starts, ends = self.integers(1), self.integers(2)
        else:
            for name in ("starts", "ends"):
                enforce(self.HasArgument(name), f"The argument {name} is missing.")
            starts, ends = self.GetRepeatedArgument("starts"), self.GetRepeatedArgument("ends")
        sizes = list(self.Input(0).sizes())
        if len(starts) != len(ends) or len(starts) > len(sizes):
            raise EnforceNotMet(
                f"{len(starts)} starts and {len(ends)} ends do not match {len(sizes)} dimensions."
            )
        x = self.load(0)
        cut = 0
        for dim, (start, end) in enumerate(zip(starts, ends, strict=True)):
            size = sizes[dim]
            start, end = slice_bounds(start, end, size)
            if size and not 0 <= start <= end:
                raise EnforceNotMet(
                    f"{starts[dim]} to {ends[dim]} is not within dimension {dim} of size {size}."
                )
            if size and end - start < size:
                cut += 1
                x = x.narrow(dim, start, end - start)
        enforce(
            cut <= 1 or not self.Input(0).numel(), "Only one dimension can be sliced at a time."
        )
        self.store(0, x.clone(memory_format=torch.contiguous_format), self.Input(0).dtype())


class _Gather(AnyTypeOperator):
    """The slices of input 0 along an axis at the indices in input 1."""

    def gather(self, axis: int, wrap: bool, match_outer: bool) -> None:
        """Set output 0 to the slices; `wrap`: negative indices count from the end."""
        data, dtype = self.load(0), self.Input(0).dtype()
        indices = self.x(1, INTS)
        axis = normal_axis(axis, data.dim())
        rows = data.size(axis)
        if rows == 0:
            self.store(0, data.clone(), dtype)
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
            self.store(0, found.view(sizes), dtype)
            return
        outer = data.shape[:axis]
        enforce(axis >= 1, "With match_outer the axis must be at least 1.")
        enforce(
            indices.shape[:axis] == outer,
            f"Indices of sizes {list(indices.shape)} do not begin with the sizes {list(outer)}.",
        )
        sizes = [*indices.shape, *data.shape[axis + 1 :]]
        flat = data.reshape(outer.numel(), rows, data.shape[axis + 1 :].numel())
        each = places.reshape(outer.numel(), indices.shape[axis:].numel(), 1)
        each = each.expand(-1, -1, flat.size(2))
        self.store(0, flat.gather(1, each).view(sizes), dtype)


@register_operator("Gather")
class Gather(_Gather):
    """The slices of input 0 along `axis` (0) at the indices in input 1."""

    def move(self) -> None:
        axis = self.GetSingleArgument("axis", 0)
        wrap = self.GetSingleArgument("wrap_indices", axis == 0)
        self.gather(axis, wrap, self.GetSingleArgument("match_outer", False))


@register_operator("BatchGather")
class BatchGather(_Gather):
    """The slices of input 0 along axis 1 at the indices in input 1."""

    def move(self) -> None:
        self.gather(1, False, self.GetSingleArgument("match_outer", False))
