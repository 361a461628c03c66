# SPDX-License-Identifier: Apache-2.0
"""Operators that change the sizes of a tensor and keep its elements, or that return its sizes."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.torch_operator import INTS, TorchOperator, enforce, normal_axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("Reshape")
class Reshape(AnyTypeOperator):
    """Input 0 with the sizes in argument `shape` or input 1; output 1: the old sizes.

    A size of 0 keeps that of the dimension; one size of -1 is inferred.
    """

    def move(self) -> None:
        source = self.Input(0)
        dtype = c10.int64
        if self.InputSize() == 2:
            enforce(
                not self.HasArgument("shape"), "The shape is an argument or an input, not both."
            )
            wanted = self.Input(1)
            enforce(
                wanted.dim() == 1 and wanted.numel() > 0,
                "Input 1 must be a list of sizes that is not empty.",
            )
            shape = self.integers(1, INTS)
            dtype = wanted.dtype()
        else:
            enforce(self.HasArgument("shape"), "The argument shape is missing.")
            shape = self.GetRepeatedArgument("shape")
        old = list(source.sizes())
        self.store_reshaped(self._resolved(shape, old, source.numel()))
        output = self.Output(1, [len(old)], dtype)
        output.mutable_data()[:] = old

    def _resolved(self, shape: list[int], old: list[int], numel: int) -> list[int]:
        if numel:
            shape = [old[i] if size == 0 and i < len(old) else size for i, size in enumerate(shape)]
        unknown = [i for i, size in enumerate(shape) if size == -1]
        enforce(len(unknown) <= 1, f"At most one size of {shape} may be -1.")
        if unknown:
            known = 1
            for size in shape:
                known *= 1 if size == -1 else size
            if numel and (known == 0 or numel % known):
                raise EnforceNotMet(
                    f"{numel} elements cannot be reshaped to {shape}.",
                    condition="total_size % size == 0",
                )
            shape[unknown[0]] = numel // known if numel else 0
        return shape


@register_operator("ResizeLike")
class ResizeLike(AnyTypeOperator):
    """Input 0 with the sizes of input 1."""

    def move(self) -> None:
        self.store_reshaped(self.Input(1).sizes())


@register_operator("Flatten")
class Flatten(AnyTypeOperator):
    """Input 0 with two dimensions: those before `axis` (1), and the rest."""

    def move(self) -> None:
        source = self.Input(0)
        axis = self.GetSingleArgument("axis", 1)
        enforce(
            0 <= axis <= source.dim(), f"Axis {axis} is out of range for {source.dim()} dimensions."
        )
        self.store_reshaped([source.size_to_dim(axis), source.size_from_dim(axis)])


@register_operator("FlattenToVec")
class FlattenToVec(AnyTypeOperator):
    """Input 0 with one dimension."""

    def move(self) -> None:
        enforce(self.Input(0).dim() >= 1, "Input 0 must have at least one dimension.")
        self.store_reshaped([self.Input(0).numel()])


class _Dims(AnyTypeOperator):
    """An operator with an argument `dims`, indices of dimensions of size 1."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._dims = sorted(set(self.GetRepeatedArgument("dims")))
        enforce(bool(self._dims), "The argument dims is missing.")
        enforce(self._dims[0] >= 0, f"The dims must not be negative: {self._dims}.")


@register_operator("Squeeze")
class Squeeze(_Dims):
    """Input 0 without the dimensions `dims`, which have size 1."""

    def move(self) -> None:
        old = list(self.Input(0).sizes())
        if self._dims[-1] >= len(old):
            raise EnforceNotMet(
                f"There is no dimension {self._dims[-1]} in sizes {old}.",
                condition="dim() > dims.back()",
            )
        for dim in self._dims:
            enforce(old[dim] == 1, f"Dimension {dim} of sizes {old} must be 1.")
        self.store_reshaped([size for i, size in enumerate(old) if i not in self._dims])


@register_operator("ExpandDims")
class ExpandDims(_Dims):
    """Input 0 with dimensions of size 1 inserted at `dims`."""

    def move(self) -> None:
        sizes = list(self.Input(0).sizes())
        if self._dims[-1] >= len(sizes) + len(self._dims):
            raise EnforceNotMet(
                f"Sizes {sizes} and {len(self._dims)} more have no dimension {self._dims[-1]}.",
                condition="dim() + dims.size() > dims.back()",
            )
        for dim in self._dims:
            sizes.insert(dim, 1)
        self.store_reshaped(sizes)


@register_operator("PrependDim")
class PrependDim(AnyTypeOperator):
    """Input 0 with its first dimension split into `dim_size` and the rest."""

    def move(self) -> None:
        first = self.GetSingleArgument("dim_size", 0)
        enforce(first > 0, "The argument dim_size must be positive.")
        sizes = list(self.Input(0).sizes())
        enforce(bool(sizes), "Input 0 must have at least one dimension.")
        enforce(sizes[0] % first == 0, f"{sizes[0]} rows are not a multiple of {first}.")
        self.store_reshaped([first, sizes[0] // first, *sizes[1:]])


@register_operator("MergeDim")
class MergeDim(AnyTypeOperator):
    """Input 0 with its first two dimensions merged."""

    def move(self) -> None:
        sizes = list(self.Input(0).sizes())
        enforce(len(sizes) > 1, "Input 0 must have at least two dimensions.")
        self.store_reshaped([sizes[0] * sizes[1], *sizes[2:]])


@register_operator("Shape")
class Shape(TorchOperator):
    """The sizes of input 0, or those of the dimensions `axes`, int64."""

    def RunOnDevice(self) -> None:
        sizes = list(self.Input(0).sizes())
        axes = self.GetRepeatedArgument("axes")
        for axis in axes:
            enforce(axis >= 0, f"Axes must not be negative: {axis}.")
            normal_axis(axis, len(sizes))
        found = [sizes[axis] for axis in axes] if axes else sizes
        self.Output(0, [len(found)], c10.int64).mutable_data()[:] = found


@register_operator("Size")
class Size(TorchOperator):
    """The number of elements of input 0, int64 without dimensions."""

    def RunOnDevice(self) -> None:
        numel = self.Input(0).numel()
        self.put_value(0, numel, c10.int64)


@register_operator("IsEmpty")
class IsEmpty(TorchOperator):
    """Whether input 0 has no elements."""

    def RunOnDevice(self) -> None:
        empty = self.Input(0).numel() == 0
        self.put_value(0, empty, c10.bool)


@register_operator("HasElements")
class HasElements(TorchOperator):
    """Whether any input has elements."""

    def RunOnDevice(self) -> None:
        some = any(self.Input(i).numel() > 0 for i in range(self.InputSize()))
        self.put_value(0, some, c10.bool)
