# SPDX-License-Identifier: Apache-2.0
"""Concat and Split."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT32, enforce, normal_axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


class _Axis(AnyTypeOperator):
    """An operator along `axis`, or along the channels of images in `order`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._add_axis = False
        if not self.HasArgument("axis"):
            order = self.GetSingleArgument("order", "NCHW")
            if order not in ("NCHW", "NHWC"):
                raise EnforceValueError(f"The order must be NCHW or NHWC, not {order!r}.")
            self._axis = order.index("C")
            return
        enforce(not self.HasArgument("order"), "The arguments axis and order exclude each other.")
        self._axis = self.GetSingleArgument("axis", -1)
        self._add_axis = bool(self.GetSingleArgument("add_axis", 0))


@register_operator("Concat")
@register_operator("DepthConcat")
class Concat(_Axis):
    """Concatenate the inputs along an axis, or stack them along a new one with `add_axis`.

    Output 1: the size of each input along the axis, int32.
    """

    def move(self) -> None:
        tensors = [self.Input(i) for i in range(self.InputSize())]
        first = list(tensors[0].sizes())
        dtype = tensors[0].dtype()
        axis = normal_axis(self._axis, len(first) + self._add_axis)
        for i, tensor in enumerate(tensors):
            enforce(
                tensor.dtype() is dtype,
                f"All inputs must have the same type: input 0 has {dtype.name}, input {i} "
                f"{tensor.dtype().name}.",
            )
            sizes = list(tensor.sizes())
            if len(sizes) != len(first) or any(
                size != first[d] for d, size in enumerate(sizes) if self._add_axis or d != axis
            ):
                raise EnforceNotMet(
                    f"Inputs 0 and {i}, of sizes {first} and {sizes}, may differ only along axis "
                    f"{axis}."
                )
        lengths = [1 if self._add_axis else tensor.size(axis) for tensor in tensors]
        parts = [self.load(i) for i in range(len(tensors))]
        together = torch.stack(parts, axis) if self._add_axis else torch.cat(parts, axis)
        self.store(0, together, dtype)
        self.Output(1, [len(lengths)], c10.int32).mutable_data()[:] = lengths


class _Split(_Axis):
    """Input 0 split along an axis."""

    def part(self, axis: int, sizes: list[int]) -> None:
        """Set each output to as many slices along `axis` as `sizes` specifies."""
        dtype = self.Input(0).dtype()
        for size in sizes:
            enforce(size >= 0, f"The parts must not be negative: {sizes}.")
        parts = torch.split(self.load(0), sizes, axis)
        for o, part in enumerate(parts):
            self.store(
                o,
                (part.squeeze(axis) if self._add_axis else part).clone(
                    memory_format=torch.contiguous_format
                ),
                dtype,
            )


@register_operator("Split")
@register_operator("DepthSplit")
class Split(_Split):
    """Split input 0 into parts of sizes `split`, of the sizes in input 1, or of equal sizes.

    With `add_axis` each part is one slice, without the axis.
    """

    def move(self) -> None:
        axis = normal_axis(self._axis, self.Input(0).dim())
        rows = self.Input(0).size(axis)
        n = self.OutputSize()
        sizes = self.GetRepeatedArgument("split")
        if self.InputSize() == 2:
            enforce(not sizes, "The parts are an argument or an input, not both.")
            sizes = self.integers(1, INT32)
        elif not sizes:
            enforce(rows % n == 0, f"{rows} rows cannot be split into {n} equal parts.")
            sizes = [rows // n] * n
        enforce(len(sizes) == n, f"There are {len(sizes)} parts, but {n} outputs.")
        if self._add_axis:
            sizes = [1] * n
        enforce(sum(sizes) == rows, f"The parts {sizes} do not add up to {rows} rows.")
        self.part(axis, sizes)


@register_operator("SplitByLengths")
class SplitByLengths(_Split):
    """Split input 0: input 1 has equally many lengths per output, whose sums are its sizes.

    With `use_scaling_lengths` the lengths are scaled to add up to all slices.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._add_axis = False
        if self.HasArgument("axis"):
            self._axis = self.GetSingleArgument("axis", 0)

    def move(self) -> None:
        lengths = self.integers(1, INT32)
        n = self.OutputSize()
        enforce(len(lengths) % n == 0, f"{len(lengths)} lengths are not a multiple of {n} outputs.")
        axis = normal_axis(self._axis, self.Input(0).dim())
        rows, total = self.Input(0).size(axis), sum(lengths)
        scale = 1
        if self.GetSingleArgument("use_scaling_lengths", False):
            enforce(
                rows % (total or 1) == 0,
                f"{rows} rows are not a multiple of {total}, the sum of the lengths.",
            )
            scale = rows // total if total else 1
        else:
            enforce(total == rows, f"The lengths add up to {total}, but there are {rows} rows.")
        each = len(lengths) // n
        sizes = [scale * sum(lengths[o * each : (o + 1) * each]) for o in range(n)]
        enforce(sum(sizes) == rows, f"The parts {sizes} do not add up to {rows} rows.")
        self.part(axis, sizes)
