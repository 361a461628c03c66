# SPDX-License-Identifier: Apache-2.0
"""Functions of two numbers, element by element: a row of a table each.

Sizes broadcast as in NumPy; or in the old way where the argument `broadcast` is set: input 1 then
stands for a run of dimensions of input 0, the last ones or those from `axis` on. Follows
caffe2/operators/elementwise_ops.h and elementwise_ops_utils.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import (
    BOOL,
    FLOAT,
    NUMBERS,
    NUMBERS_AND_BOOL,
    TorchOperator,
    enforce,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__: list[str] = []


class LegacyBroadcast(FloatOperator):
    """An operator with the arguments `broadcast`, `axis`, `axis_str` and `order`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._legacy = self.GetSingleArgument("broadcast", False)
        self._axis = self.GetSingleArgument("axis", -1)
        if self._legacy and self.HasArgument("axis_str"):
            name = self.GetSingleArgument("axis_str", "")
            order = self.GetSingleArgument("order", "NCHW")
            if not name:
                return
            enforce(self._axis == -1, "The arguments axis and axis_str exclude each other.")
            enforce(len(name) == 1 and name in order, f"The axis {name!r} is none of {order!r}.")
            self._axis = order.index(name)

    def aligned(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return input 1 with dimensions of size 1, so that it broadcasts as it is to.

        Raises EnforceNotMet: its sizes are not those of the dimensions that it stands for. Sizes
        of 1 at its ends are stretched, others are not.
        """
        if b.numel() == 1:
            return b.reshape(())
        spare = a.dim() - b.dim()
        axis = spare if self._axis == -1 else self._axis
        if spare < 0 or not 0 <= axis <= spare:
            raise EnforceNotMet(
                f"Sizes {list(b.shape)} do not broadcast to {list(a.shape)} from axis {axis}.",
                condition="axis >= 0 && axis <= A.dim() - B.dim()",
            )
        sizes = list(b.shape)
        inner = [i for i, size in enumerate(sizes) if size != 1]
        for i in range(inner[0], inner[-1] + 1) if inner else ():
            if a.size(axis + i) != sizes[i]:
                raise EnforceNotMet(
                    f"Sizes {sizes} are not those of {list(a.shape)} from axis {axis}.",
                    condition="A.size(i + axis) == B.size(i)",
                )
        return b.reshape([1] * axis + sizes + [1] * (spare - axis))


class _Binary(LegacyBroadcast):
    """A function of torch's on the elements of inputs 0 and 1, of one type."""

    function: str
    types: tuple[TypeMeta, ...]
    result: TypeMeta | None = None

    def RunOnDevice(self) -> None:
        """Compute into the output's own buffer, which may be that of an input."""
        dtype = self.Input(0).dtype()
        a = self.x(0, self.types)
        b = self.x(1, (dtype,))
        sizes: Sequence[int] = a.shape
        if self._legacy:
            enforce(
                not self.IsInputOutputAlias(1, 0),
                "In place of input 1 there is no broadcasting in the old way.",
            )
            b = self.aligned(a, b)
        elif sizes != b.shape:
            try:
                sizes = torch.broadcast_shapes(sizes, b.shape)
            except RuntimeError as cause:
                raise EnforceNotMet(
                    f"Sizes {list(a.shape)} and {list(b.shape)} do not broadcast together."
                ) from cause
            for i in self._in_place.values():
                enforce(
                    sizes == (b if i else a).shape,
                    f"The result has sizes {list(sizes)}, which input {i} has not.",
                )
        self.compute(a, b, self.out(0, sizes, self.result or dtype))

    def compute(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Write the result to `out`."""
        getattr(torch, self.function)(a, b, out=out)


_DISCRETE = (c10.int32, c10.int64, c10.bool)

# Caffe2's operator: torch's function, the types it takes, the type of its result if another.
_FUNCTIONS: dict[str, tuple[str, tuple[TypeMeta, ...], TypeMeta | None]] = {
    "Add": ("add", NUMBERS, None),
    "Sub": ("sub", NUMBERS, None),
    "Mul": ("mul", NUMBERS, None),
    "And": ("logical_and", BOOL, None),
    "Or": ("logical_or", BOOL, None),
    "Xor": ("logical_xor", BOOL, None),
    "BitwiseAnd": ("bitwise_and", _DISCRETE, None),
    "BitwiseOr": ("bitwise_or", _DISCRETE, None),
    "BitwiseXor": ("bitwise_xor", _DISCRETE, None),
    "EQ": ("eq", NUMBERS_AND_BOOL, c10.bool),
    "NE": ("ne", NUMBERS_AND_BOOL, c10.bool),
    "LT": ("lt", NUMBERS_AND_BOOL, c10.bool),
    "LE": ("le", NUMBERS_AND_BOOL, c10.bool),
    "GT": ("gt", NUMBERS_AND_BOOL, c10.bool),
    "GE": ("ge", NUMBERS_AND_BOOL, c10.bool),
}

for _name, (_function, _types, _result) in _FUNCTIONS.items():
    _class = type(
        _name,
        (_Binary,),
        {
            "__doc__": f"torch.{_function} of each pair of elements.",
            "__module__": __name__,
            "function": _function,
            "types": _types,
            "result": _result,
        },
    )
    register_operator(_name)(_class)


@register_operator("Div")
class Div(_Binary):
    """The quotient of each pair of elements; of integers, towards zero."""

    types = NUMBERS

    def compute(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Write the result to `out`."""
        if a.is_floating_point():
            torch.div(a, b, out=out)
            return
        enforce(bool((b != 0).all()), "An integer is divided by zero.")
        torch.div(a, b, rounding_mode="trunc", out=out)


@register_operator("Pow")
class Pow(LegacyBroadcast):
    """Elements to the power of `exponent`, or of input 1, which broadcasts in the old way only."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if self.InputSize() == 1:
            enforce(self.HasArgument("exponent"), "There is neither an exponent nor an input 1.")
        elif not self._legacy:
            enforce(
                self._axis == -1 and not self.GetSingleArgument("axis_str", ""),
                "An axis is for broadcast=1.",
            )

    def RunOnDevice(self) -> None:
        a = self.x(0, FLOAT)
        b: Any
        if self.InputSize() == 1:
            b = self.GetSingleArgument("exponent", 0.0)
        else:
            b = self.x(1, FLOAT)
            if self._legacy:
                enforce(
                    not self.IsInputOutputAlias(1, 0),
                    "In place of input 1 there is no broadcasting.",
                )
                b = self.aligned(a, b)
            elif a.shape != b.shape:
                raise EnforceNotMet(
                    f"Sizes {list(a.shape)} and {list(b.shape)} differ; set broadcast=1.",
                    condition="A.sizes() == B.sizes()",
                )
        torch.pow(a, b, out=self.out(0, a.shape, c10.float32))


class _Several(TorchOperator):
    """A function of all inputs, of one type and the same sizes."""

    types: tuple[TypeMeta, ...] = FLOAT

    def RunOnDevice(self) -> None:
        """Compute into the output's own buffer, which may be that of input 0."""
        dtype = self.Input(0).dtype()
        tensors = [self.x(0, self.types)]
        for i in range(1, self.InputSize()):
            tensors.append(self.x(i, (dtype,)))
            if tensors[i].shape != tensors[0].shape:
                raise EnforceTypeError(
                    f"Inputs 0 and {i} are of sizes {list(tensors[0].shape)} and "
                    f"{list(tensors[i].shape)}, which have to be the same."
                )
        out = self.out(0, tensors[0].shape, dtype)
        if len(tensors) == 1:
            if not self._in_place:
                out.copy_(tensors[0])
            return
        self.join(tensors[0], tensors[1], out)
        for tensor in tensors[2:]:
            self.join(out, tensor, out)
        self.finish(out, len(tensors))

    def join(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Write the function of two of them to `out`."""
        raise NotImplementedError

    def finish(self, out: torch.Tensor, n: int) -> None:
        """Make of the function of all `n` what the output is to be."""


@register_operator("Sum")
@register_operator("SumInt")
class Sum(_Several):
    """The sum of the inputs."""

    types: tuple[TypeMeta, ...] = NUMBERS

    def join(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Add."""
        torch.add(a, b, out=out)


@register_operator("Mean")
class Mean(Sum):
    """The mean of the inputs."""

    types = (c10.float32, c10.float64)

    def finish(self, out: torch.Tensor, n: int) -> None:
        """Divide."""
        out.mul_(1 / n)


@register_operator("Max")
class Max(_Several):
    """The greatest of the inputs at each place; with NaN the earlier one."""

    def join(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Take the greater."""
        torch.where(a < b, b, a, out=out)


@register_operator("Min")
class Min(_Several):
    """The least of the inputs at each place; with NaN the earlier one."""

    def join(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Take the less."""
        torch.where(b < a, b, a, out=out)


@register_operator("WeightedSum")
class WeightedSum(TorchOperator):
    """The sum of inputs 0, 2, ... times the numbers of inputs 1, 3, ..."""

    def RunOnDevice(self) -> None:
        enforce(self.InputSize() % 2 == 0, "Each input has a weight after it.")
        first = self.x(0, FLOAT)
        enforce(first.numel() > 0, "Input 0 has no elements.")
        weights = []
        for i in range(0, self.InputSize(), 2):
            x, weight = self.x(i, FLOAT), self.x(i + 1, FLOAT)
            enforce(x.numel() == first.numel(), "The inputs differ in their numbers of elements.")
            enforce(weight.numel() == 1, f"Input {i + 1} is a weight, and has to be one number.")
            enforce(
                not i or not self.IsInputOutputAlias(i, 0),
                f"In place of input {i} is not possible; put the output as input 0.",
            )
            weights.append(weight.item())
        out = self.out(0, first.shape, c10.float32)
        torch.mul(first, weights[0], out=out)
        for i, weight in enumerate(weights[1:], 1):
            out.add_(self.x(2 * i).view(first.shape), alpha=weight)
